"""The user data of Linux agents in a real Debian: packages are really installed, and the service is really enabled."""

import pytest

from autoscaler_workbench.maintenance.user_data import installer
from support.debian import inside, run
from support.template import TEMPLATE, resolved


@pytest.mark.needs("root", "debootstrap")
def test_a_debian_gets_the_java_the_user_and_the_service_and_powers_off_when_nobody_answers(debian):
    script = debian / "user-data"
    data = TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    script.write_text(resolved(data["UserData"]["Fn::Base64"]), encoding="utf-8")
    script.chmod(0o755)
    # No systemd runs in there: the service is enabled, and cannot be started.
    said = inside(debian, "/user-data", check=False)
    assert 'version "21.' in inside(debian, "java -version").stderr, said.stdout[-2000:] + said.stderr[-2000:]
    assert "there is no Java" not in said.stderr
    assert (debian / "etc/systemd/system/multi-user.target.wants/autoscaler-agent.service").is_symlink()
    inside(debian, "systemd-analyze verify autoscaler-agent.service")
    inside(debian, "runuser -u jenkins -- test -w /home/jenkins")
    settings = "IMDS=http://127.0.0.1:9 BOOT_TIMEOUT_SECONDS=0 POWER_OFF='touch /off'"
    said = inside(debian, f"set -a; . /etc/autoscaler-agent.conf; {settings}; timeout 60 /usr/local/sbin/autoscaler-agent", check=False)
    assert (debian / "off").exists(), said.stdout + said.stderr
    assert "not registered within 0 s" in said.stdout
    again = inside(debian, "/user-data", check=False)
    assert "Setting up" not in again.stdout, "what is there is installed again"


@pytest.mark.needs("shellcheck")
def test_the_user_data_passes_shellcheck_and_so_does_what_is_packed_in_it(tmp_path):
    script, inner = tmp_path / "user-data", tmp_path / "installer"
    data = TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    script.write_text(resolved(data["UserData"]["Fn::Base64"]), encoding="utf-8")
    inner.write_text(installer("linux"), encoding="utf-8")
    run("shellcheck", "--exclude=SC2034", str(script))  # what is set there is used in what is packed
    run("shellcheck", "--shell=sh", str(inner))
