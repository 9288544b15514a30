"""What opens the caches to builds, run for real: signed requests to stand-ins of STS and ECR; what Docker's tools and SDKs make of it."""

import json
import os
import pwd
import stat
import subprocess
import time

import pytest
from botocore.session import Session

from autoscaler_workbench.maintenance.user_data import installer
from support.caches import BUILDS, CACHE_KEYS, INSTANCE, LOGIN, REGISTRY, ROLE, SCRIPTS, configured
from support.signatures import KEYS, REGION

pytestmark = pytest.mark.needs("root", "curl")


def test_it_assumes_the_role_of_the_caches_as_its_instance_and_gets_a_login_with_that_alone(cloud):
    cloud.run(cloud.has_all)
    assert cloud.asked == ["", ""]
    assert cloud.assumed == [
        {
            "Action": ["AssumeRole"],
            "Version": ["2011-06-15"],
            "DurationSeconds": ["3600"],
            "RoleArn": [ROLE],
            "RoleSessionName": [INSTANCE],
        }
    ]
    assert (cloud.keys / "login").read_text(encoding="utf-8") == f"{LOGIN}\n"


def test_only_builds_read_the_keys_and_nobody_but_root_writes_beside_them(cloud):
    cloud.run(cloud.has_all)
    for name in ("login", "credentials"):
        assert ((cloud.keys / name).owner(), stat.S_IMODE((cloud.keys / name).stat().st_mode)) == (BUILDS, 0o400)
    assert (cloud.keys.owner(), stat.S_IMODE(cloud.keys.stat().st_mode)) == ("root", 0o755)


def test_no_key_is_said_or_passed_where_others_can_see_it(cloud):
    (cloud.directory / "curl").write_text(f'#!/bin/sh\necho "$*" >>{cloud.directory}/words\nexec /usr/bin/curl "$@"\n', encoding="utf-8")
    (cloud.directory / "curl").chmod(0o755)
    said = cloud.run(cloud.has_all) + (cloud.directory / "words").read_text(encoding="utf-8")
    assert "--aws-sigv4" in said
    for secret in (KEYS.secret_key, KEYS.token, CACHE_KEYS.secret_key, CACHE_KEYS.token, LOGIN):
        assert secret not in said


def test_an_sdk_takes_the_credentials_and_asks_again_in_a_long_build(cloud, monkeypatch):
    cloud.run(cloud.has_all)
    config = configured(cloud, CACHE_ROLE=ROLE) / "etc/autoscaler-caches.aws"
    config.write_text(config.read_text(encoding="utf-8").replace("/run/autoscaler-caches", str(cloud.keys)), encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    session = Session()
    keys = session.get_credentials()
    assert (keys.method, session.get_config_variable("region")) == ("custom-process", REGION)
    assert keys.get_frozen_credentials()[:3] == (CACHE_KEYS.access_key, CACHE_KEYS.secret_key, CACHE_KEYS.token)


def test_docker_s_tools_ask_its_helper_for_the_login(cloud):
    cloud.run(cloud.has_all)
    told = json.loads((cloud.home / ".docker/config.json").read_text(encoding="utf-8"))
    assert told == {"credHelpers": {REGISTRY: "autoscaler"}}
    assert (cloud.home / ".docker/config.json").owner() == BUILDS
    helper, environment = SCRIPTS / "docker-credential-autoscaler", {**os.environ, "RUN_DIRECTORY": str(cloud.keys)}
    done = subprocess.run([helper, "get"], input=REGISTRY, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == {"ServerURL": REGISTRY, "Username": "AWS", "Secret": LOGIN}
    for word in ("store", "erase"):
        assert subprocess.run([helper, word], input="{}", capture_output=True, text=True, check=False, env=environment).returncode == 1


def test_what_an_image_says_to_docker_already_stays(cloud):
    mine = cloud.home / ".docker/config.json"
    mine.parent.mkdir()
    mine.write_text('{"auths": {}}', encoding="utf-8")
    os.chown(mine.parent, pwd.getpwnam(BUILDS).pw_uid, -1)
    cloud.run(cloud.has_all)
    assert mine.read_text(encoding="utf-8") == '{"auths": {}}'


def test_a_link_in_a_build_s_home_makes_root_write_nowhere(cloud):
    victim = cloud.directory / "victim"
    victim.mkdir(mode=0o700)
    (cloud.home / ".docker").symlink_to(victim)
    said = cloud.run(cloud.has_all)
    assert list(victim.iterdir()) == []
    assert "Docker cannot be told" in said


def test_without_a_cache_of_images_there_is_no_login(cloud):
    cloud.run((cloud.keys / "credentials").exists, IMAGE_CACHE="")
    assert not (cloud.keys / "login").exists()
    assert not (cloud.home / ".docker").exists()


def test_it_asks_again_until_it_is_answered_and_again_before_the_keys_are_old(cloud):
    cloud.refuses = 2
    said = cloud.run(lambda: len(cloud.assumed) >= 5, RENEW_SECONDS="0.2")
    assert said.count("the role of the caches cannot be assumed") == 2
    assert set(cloud.asked) == {""}


def test_where_builds_have_no_user_yet_it_waits(cloud):
    end = time.monotonic() + 1
    said = cloud.run(lambda: time.monotonic() > end, AGENT_USER="nobody-here")
    assert "there is no user nobody-here yet" in said
    assert cloud.assumed == []


def test_the_user_data_tells_builds_where_the_caches_are(cloud):
    root = configured(cloud, CACHE_ROLE=ROLE, IMAGE_CACHE=f"{REGISTRY}/ci", BUILD_CACHE="bucket", DOCKER_HUB="yes")
    environment = (root / "etc/systemd/system/autoscaler-agent.service.d/caches.conf").read_text(encoding="utf-8").splitlines()
    assert environment == [
        "[Service]",
        f"Environment=IMAGE_CACHE={REGISTRY}/ci BUILD_CACHE=bucket BUILD_CACHE_AWS_CONFIG=/etc/autoscaler-caches.aws",
    ]
    settings = (root / "etc/autoscaler-caches.conf").read_text(encoding="utf-8").splitlines()
    assert settings[0] == f"CACHE_ROLE={ROLE}"
    assert settings[-1] == f"IMAGE_CACHE={REGISTRY}/ci"
    assert (cloud.directory / "systemctl.log").read_text(encoding="utf-8") == "start autoscaler-caches\n"
    registries = (root / "etc/containers/registries.conf.d/autoscaler.conf").read_text(encoding="utf-8")
    assert registries.count("[[registry.mirror]]") == 4
    assert f'[[registry]]\nlocation = "docker.io"\n[[registry.mirror]]\nlocation = "{REGISTRY}/ci/docker-hub"' in registries


def test_what_is_not_cached_is_not_looked_for_in_the_cache(cloud):
    root = configured(cloud, CACHE_ROLE=ROLE, IMAGE_CACHE=f"{REGISTRY}/ci")
    assert "docker.io" not in (root / "etc/containers/registries.conf.d/autoscaler.conf").read_text(encoding="utf-8")
    assert not (root / "etc/docker").exists()


def test_a_mirror_is_told_to_docker_beside_what_the_image_says_to_it(cloud):
    daemon = cloud.directory / "root/etc/docker/daemon.json"
    daemon.parent.mkdir(parents=True)
    daemon.write_text('{"runtimes": {"nvidia": {}}}', encoding="utf-8")
    root = configured(cloud, DOCKER_MIRROR="https://mirror.example.org")
    told = json.loads(daemon.read_text(encoding="utf-8"))
    assert told == {"runtimes": {"nvidia": {}}, "registry-mirrors": ["https://mirror.example.org"]}
    assert (cloud.directory / "systemctl.log").read_text(encoding="utf-8") == "try-restart docker\n"
    assert not (root / "etc/autoscaler-caches.conf").exists()


def test_caches_that_cannot_be_set_up_keep_no_agent_from_its_work(cloud):
    configured(cloud, python3=False, DOCKER_MIRROR="https://mirror.example.org", CACHE_ROLE=ROLE)
    assert "not set up" in (cloud.directory / "said").read_text(encoding="utf-8")


def test_on_an_image_without_the_program_that_fetches_keys_the_agent_is_installed_and_the_console_says_so(cloud):
    configured(cloud, systemctl="exit 5", CACHE_ROLE=ROLE, IMAGE_CACHE=f"{REGISTRY}/ci")
    assert "was the image made with image/caches.yaml?" in (cloud.directory / "said").read_text(encoding="utf-8")


@pytest.mark.needs("shellcheck")
@pytest.mark.parametrize("name", ["autoscaler-caches", "docker-credential-autoscaler"])
def test_the_scripts_pass_shellcheck(name):
    done = subprocess.run(["shellcheck", SCRIPTS / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.needs("shellcheck")
def test_what_configures_them_passes_shellcheck_too():
    names = ("REGION", "CACHE_ROLE", "STS_URL", "ECR_URL", "IMAGE_CACHE", "DOCKER_HUB", "BUILD_CACHE", "DOCKER_MIRROR")
    script = "#!/bin/sh\n" + "".join(f"{name}=x\n" for name in names) + installer("linux-caches")
    done = subprocess.run(["shellcheck", "-e", "SC2050", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
