"""The Linux components run in a real Debian, until the agent of that image registers, through the real handler, at the simulated Jenkins.

Debian only: no Amazon Linux, no arm64, no graphics card and no Image Builder is here.
"""

import json
import subprocess
import time
import zipfile
from contextlib import contextmanager

import pytest

from agent.conftest import Surroundings, served
from autoscaler_workbench.fakes.http_fakes.jenkins import inbound
from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.maintenance.image_components import text_of
from support.debian import inside, into, run
from support.deployed import deployed, event
from support.image_builder import ComponentError, read_component
from support.template import TEMPLATE, resolved
from support.translated import stack

pytestmark = pytest.mark.needs("root", "debootstrap")

# Connects as agent.jar does, but for the WebSocket, which the simulated Jenkins lacks; and stays.
STAND_IN = """
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;

public class Agent {
    public static void main(String[] words) throws Exception {
        String url = "", name = "", secret = "";
        for (int i = 0; i < words.length; i++) {
            switch (words[i]) {
                case "-url" -> url = words[++i];
                case "-name" -> name = words[++i];
                case "-secret" -> secret = Files.readString(Path.of(words[++i].substring(1))).trim();
                default -> { }
            }
        }
        URI place = URI.create(url + "stand-in/connect?name=" + name + "&secret=" + secret);
        HttpURLConnection connection = (HttpURLConnection) place.toURL().openConnection();
        connection.setRequestMethod("POST");
        System.out.println(System.getProperty("user.name") + " connects");
        if (connection.getResponseCode() != 200) { throw new IllegalStateException("refused: " + connection.getResponseCode()); }
        Thread.sleep(600_000);
    }
}
"""


def component(name):
    return read_component(text_of(name))


def shell_in(root):
    return lambda script: subprocess.run(into(root, "/bin/bash"), input=script, capture_output=True, text=True, check=False, timeout=900)


@pytest.fixture(scope="module")
def image(debian):
    """A Debian after the components that every Linux image has."""
    for phase in ("build", "validate", "test"):
        for name in ("base", "devices-1", "devices-2", "caches"):
            component(name).run(phase, shell_in(debian))
    return debian


@pytest.fixture(autouse=True)
def still_an_image(image):
    """What an agent or a build left in it is gone before the next test."""
    yield
    inside(
        image,
        "rm -rf /etc/autoscaler-agent.conf /home/jenkins/agent /off; usermod -G '' jenkins",
    )


@pytest.fixture(scope="module")
def agent_jar(image, tmp_path_factory):
    """An agent.jar that runs: compiled by the Java that the component installed."""
    place = image / "tmp" / "stand-in"
    place.mkdir()
    (place / "Agent.java").write_text(STAND_IN, encoding="utf-8")
    inside(image, "java -m jdk.compiler/com.sun.tools.javac.Main -d /tmp/stand-in /tmp/stand-in/Agent.java")
    jar = tmp_path_factory.mktemp("jar") / "agent.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: Agent\n")
        archive.write(place / "Agent.class", "Agent.class")
    return jar.read_bytes()


@contextmanager
def launched(agent_jar, monkeypatch, tmp_path):
    """A fleet whose one launched instance asks for itself; and what it asks: metadata, and the real handler behind a checked signature."""
    monkeypatch.setattr(inbound, "AGENT_JAR", agent_jar)
    with deployed() as here:
        here.world.ec2.on_running = lambda _instance: None
        here.call("scale_up", event("tick"))
        [instance] = here.world.ec2.instances.values()
        here.world.move_to(here.world.timeline.now + 60)

        def register():
            answer = here.call("register_agent", function_url_event(instance.id))
            return answer["statusCode"], json.loads(answer["body"])

        with contextmanager(served)(Surroundings(tmp_path, handler=register)) as around:
            yield here, around


def boots(root, around):
    """Start the image as an instance: the stack's user data, then its service by hand, as no systemd runs in there."""
    script = root / "user-data"
    data = TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    script.write_text(resolved(data["UserData"]["Fn::Base64"]), encoding="utf-8")
    script.chmod(0o755)
    said = inside(root, "/user-data", check=False)
    # The build user is not kept from the metadata by a rule: in here the rules would be this machine's.
    settings = f"REGISTER_URL={around.url}/register IMDS={around.url} BLOCK_INSTANCE_METADATA=no POWER_OFF='touch /off'"
    start = f"set -a; . /etc/autoscaler-agent.conf; {settings}; exec /usr/local/sbin/autoscaler-agent"
    return said, subprocess.Popen(into(root, "/bin/sh", "-c", start), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_agent_of_the_image_registers_and_connects_without_installing_anything(image, agent_jar, monkeypatch, tmp_path):
    with launched(agent_jar, monkeypatch, tmp_path) as (here, around):
        said, agent = boots(image, around)
        [node] = connected(here, agent)
        agent.kill()
        words = agent.communicate()[0]
    assert "Setting up" not in said.stdout, "the user data installs what the image should have"
    assert around.asked == [""]
    assert node.startswith("utility-")
    assert "jenkins connects" in words


def test_an_image_with_caches_is_told_where_they_are_before_its_agent_starts(image):
    """No systemd runs in there: its units are checked, and not started."""
    made = stack(ImageCachePrefix="ci", BuildCacheDays="7")["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    (image / "user-data").write_text(made["UserData"]["Fn::Base64"], encoding="utf-8")
    (image / "user-data").chmod(0o755)
    inside(image, "/user-data", check=False)
    inside(image, "systemd-analyze verify autoscaler-caches.service autoscaler-agent.service")
    environment = (image / "etc/systemd/system/autoscaler-agent.service.d/caches.conf").read_text(encoding="utf-8")
    assert "BUILD_CACHE=ci-buildcache-1abcdefghij2" in environment
    assert (image / "etc/autoscaler-caches.conf").read_text(encoding="utf-8").startswith("CACHE_ROLE=arn:aws:iam::")
    inside(image, "rm -r /etc/autoscaler-caches.* /etc/systemd/system/autoscaler-agent.service.d /etc/containers")


def test_gpu_lease_of_the_image_is_on_only_where_an_instance_has_a_device(image):
    """No systemd runs in there: its units are checked and enabled, and not started."""
    data = TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    (image / "user-data").write_text(resolved(data["UserData"]["Fn::Base64"]), encoding="utf-8")
    (image / "user-data").chmod(0o755)
    inside(image, "systemd-analyze verify gpu-lease.socket gpu-lease@1.service")
    said = inside(image, "/user-data", check=False)
    assert "gpu-lease: this machine has no device" in said.stderr
    assert inside(image, "systemctl is-enabled gpu-lease.socket", check=False).stdout == "disabled\n"
    inside(image, """mkdir /etc/gpu-lease; echo '{"devices": [{"id": "a"}]}' >/etc/gpu-lease/devices.json""")
    inside(image, "/user-data", check=False)
    assert inside(image, "systemctl is-enabled gpu-lease.socket", check=False).stdout == "enabled\n"
    assert inside(image, "runuser -u jenkins -- gpu-lease list").stdout == "a  -  -\n"
    inside(image, "rm -r /etc/gpu-lease; systemctl disable gpu-lease.socket")


def connected(here, agent, seconds=60):
    """Wait for a node that is online."""
    controller = here.world.controllers["main"]
    for _ in range(seconds * 10):
        if online := [name for name, node in controller.nodes.items() if node.connected]:
            return online
        assert agent.poll() is None, agent.communicate()[0]
        time.sleep(0.1)
    agent.kill()
    raise AssertionError(f"no node is online after {seconds} s\n{agent.communicate()[0]}")


def test_in_the_image_builds_can_be_kept_from_the_metadata(image):
    uid = inside(image, "id -u jenkins").stdout.strip()
    rule = f"ip link set lo up; ip -4 rule add pref 1 to 169.254.169.254 uidrange {uid}-{uid} prohibit; ip rule"
    assert f"uidrange {uid}-{uid} prohibit" in run(*into(image, "/bin/sh", "-ec", rule, network=False)).stdout


def test_the_user_of_builds_is_in_the_group_docker_only_where_it_is_asked_for(image):
    assert "docker" not in inside(image, "id -nG jenkins").stdout
    base, shell = component("base"), shell_in(image)
    base.run("build", shell, DockerForBuilds="yes")
    base.run("validate", shell, DockerForBuilds="yes")
    with pytest.raises(ComponentError, match="the user of builds and the group docker: yes"):
        base.run("validate", shell)


@pytest.mark.parametrize(
    ("breaks", "mends", "said"),
    [
        ("mv /usr/bin/git /usr/bin/gone", "mv /usr/bin/gone /usr/bin/git", "there is no git"),
        ("mv /usr/bin/curl /usr/bin/gone", "mv /usr/bin/gone /usr/bin/curl", "curl"),
        ("systemctl disable docker", "systemctl enable docker", "docker does not start at boot"),
        ("touch /etc/autoscaler-agent.conf", "rm /etc/autoscaler-agent.conf", "this was an agent"),
    ],
    ids=["git", "curl", "docker", "agent"],
)
def test_an_image_that_lacks_something_is_no_image(image, breaks, mends, said):
    inside(image, breaks)
    with pytest.raises(ComponentError, match=said):
        component("base").run("validate", shell_in(image))
    inside(image, mends)
    component("base").run("validate", shell_in(image))


def test_a_mirror_in_the_image_saves_a_build_its_clone(image):
    """A repository of this machine in the place of one on the web; the build clones with it as reference, as Jenkins' git plugin does."""
    inside(
        image,
        "set -e; git init -q -b main /srv/upstream; cd /srv/upstream; git config user.email a@example.org; git config user.name a;"
        "head -c 3000000 /dev/urandom >file; git add file; git commit -qm first;"
        # Of root, and cloned by the build user: on the web nobody asks whose it is. The mirror is not on this list.
        "git config --system safe.directory /srv/upstream; git config --system --add safe.directory /srv/upstream/.git",
    )
    warm_up, shell = component("warm-up"), shell_in(image)
    for phase in ("build", "validate"):
        warm_up.run(phase, shell, GitMirrors="file:///srv/upstream")
    clone = "git clone -q --reference /var/cache/git//srv/upstream.git file:///srv/upstream /tmp/work && du -sk /tmp/work/.git"
    kib = int(inside(image, f"runuser -u jenkins -- sh -c '{clone}'").stdout.split()[0])
    assert kib < 500, f"the clone took {kib} KiB of 3,000"
    inside(image, "rm -r /var/cache/git//srv/upstream.git/objects/pack")
    with pytest.raises(ComponentError, match="MirrorsAreWhole"):
        warm_up.run("validate", shell, GitMirrors="file:///srv/upstream")


def test_warm_up_without_anything_to_fetch_does_nothing(image):
    for phase in ("build", "validate"):
        assert all(done.stdout == "" for done in component("warm-up").run(phase, shell_in(image)))


def test_warm_up_pulls_each_image_from_a_docker_that_it_starts_and_stops(image):
    """The docker and the systemctl here only note how they are called: no daemon runs in there."""
    for program in ("docker", "systemctl"):
        fake = image / "usr/local/bin" / program
        fake.write_text(f'#!/bin/sh\necho "{program} $*" >>/tmp/calls\n', encoding="utf-8")
        fake.chmod(0o755)
    component("warm-up").run("build", shell_in(image), DockerImages="alpine:3.20 python:3.12")
    assert (image / "tmp/calls").read_text(encoding="utf-8").splitlines() == [
        "systemctl start docker",
        "docker pull --quiet alpine:3.20",
        "docker pull --quiet python:3.12",
        "systemctl stop docker.socket docker",
    ]
