"""What a cache of container images saves: counted between two of Debian's registries, with what the agent's user data tells its tools.

Not ECR, and no Docker daemon: neither is here. A registry that mirrors another one is what `DockerMirror` names.
"""

import json
import os
import shutil
import time

import pytest

from support.caches import LOGIN, SCRIPTS, configured
from support.registries import counted, made_image, registry, skopeo

pytestmark = pytest.mark.needs("docker-registry")

# The user AWS with LOGIN, by bcrypt.
HTPASSWD = "AWS:$2b$04$/dTID9smvuNkanYg/LnrYud2KTc3wib4kpej3QtcKHl0s6G61.ifC\n"
MOST_OF_THE_IMAGE = 0.05
plain = "--src-tls-verify=false"


@pytest.fixture
def image(tmp_path):
    return made_image(tmp_path / "layout", 12_000_000, 6_000_000)


def wait_until(so, seconds=60):
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_second_machine_s_first_pull_takes_next_to_nothing_from_upstream(image, tmp_path):
    with registry(tmp_path / "upstream") as upstream, counted(upstream.place) as way:
        skopeo("copy", "--dest-tls-verify=false", f"oci:{image.layout}:made", f"docker://{upstream.place}/library/made:1")
        with registry(tmp_path / "cache", proxy={"remoteurl": f"http://{way.place}"}) as cache:
            taken = []
            for machine in ("first", "second"):
                before = way.given
                skopeo("copy", plain, f"docker://{cache.place}/library/made:1", f"dir:{tmp_path / machine}")
                # The cache keeps what it passes on by itself; until then it would ask for it again.
                wait_until(lambda: all(cache.holds(blob) for blob in image.blobs))
                taken.append(way.given - before)
    first, second = taken
    figure = f"{first:,} bytes from upstream at the first pull, {second:,} at the second: {second / image.size:.3%} of the image"
    print(f"an image of {image.size:,} bytes: {figure}")  # noqa: T201 - the figure that docs/images.md quotes
    # Of the image, not of what was fetched: this registry fetches each blob twice at first, once to pass it on and once to keep it.
    assert first >= image.size
    assert second < MOST_OF_THE_IMAGE * image.size
    assert {path.name for path in (tmp_path / "first").iterdir()} == {path.name for path in (tmp_path / "second").iterdir()}


def test_without_the_cache_the_second_pull_takes_as_much_as_the_first(image, tmp_path):
    """So that the figure above is the cache's doing."""
    with registry(tmp_path / "upstream") as upstream, counted(upstream.place) as way:
        skopeo("copy", "--dest-tls-verify=false", f"oci:{image.layout}:made", f"docker://{upstream.place}/library/made:1")
        for machine in ("first", "second"):
            skopeo("copy", plain, f"docker://{way.place}/library/made:1", f"dir:{tmp_path / machine}")
    assert way.given >= 2 * image.size


@pytest.mark.needs("root", "curl")
def test_tools_on_an_agent_ask_the_cache_first_with_the_login_that_it_keeps(cloud, image, tmp_path):
    """A name of quay.io, which nobody can reach here: only the cache can have answered, and it answers nobody without a login."""
    (tmp_path / "users").write_text(HTPASSWD, encoding="utf-8")
    with registry(tmp_path / "cache", auth={"htpasswd": {"realm": "cache", "path": str(tmp_path / "users")}}) as cache:
        push = ("copy", "--dest-tls-verify=false", f"--dest-creds=AWS:{LOGIN}", f"oci:{image.layout}:made")
        skopeo(*push, f"docker://{cache.place}/ci/quay/team/made:1")
        cloud.run(cloud.has_all, IMAGE_CACHE=f"{cache.place}/ci")
        root = configured(cloud, CACHE_ROLE="arn", IMAGE_CACHE=f"{cache.place}/ci")
        told = {
            "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
            "HOME": str(cloud.home),
            "RUN_DIRECTORY": str(cloud.keys),
        }
        # A user's own file has the form of the machine's, which is not for tests to write.
        mine = cloud.home / ".config/containers/registries.conf"
        mine.parent.mkdir(parents=True)
        shutil.copy(root / "etc/containers/registries.conf.d/autoscaler.conf", mine)
        seen = json.loads(skopeo("inspect", "--raw", "--tls-verify=false", "docker://quay.io/team/made:1", **told))
        assert [layer["digest"] for layer in seen["layers"]] == list(image.blobs[1:])
        (cloud.keys / "login").unlink()
        with pytest.raises(AssertionError):
            skopeo("inspect", "--raw", "--tls-verify=false", "docker://quay.io/team/made:1", **told)
