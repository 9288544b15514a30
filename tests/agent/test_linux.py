"""The Linux agent's script, run for real: signed requests to a local function URL, a fake java."""

import hashlib
import json
import os
import shutil
import stat
import subprocess

import pytest

from agent.conftest import SECRET
from autoscaler_workbench.maintenance.user_data import installer
from packaging_root import ROOT

TOO_EARLY = 425, {"message": "EC2 does not know this instance yet"}
GONE = 410, {"message": "the agent was given up"}
DENIED_BY_AWS = 403, {"Message": "Forbidden. For troubleshooting Function URL authorization issues, see: https://docs.aws.amazon.com/"}
# Where what belongs to one controller stands.
MAIN = hashlib.sha256(b"main").hexdigest()[:16]
# It asks again without a pause; pauses grow in one test, `..._ends_nothing`.
AT_ONCE = {"FIRST_PAUSE_SECONDS": "0"}
# A user whom every distribution has.
BUILDS = "nobody"


def test_it_asks_signed_by_its_role_and_connects_as_it_is_told(around):
    around.answers = [around.registered(), GONE]
    said = around.run()
    assert around.asked == ["", ""]
    [call] = around.java_calls()
    run = around.directory / "run" / MAIN
    assert call["arguments"] == (
        f"-jar {run}/agent.jar -url {around.url}/jenkins/ -name cpu-1 -secret @{run}/secret -webSocket -workDir {around.directory}/work"
    )
    assert (call["secret"], call["mode"]) == (SECRET, "-rw-------")
    assert f"connecting to {around.url}/jenkins/ as cpu-1" in said


def test_the_metadata_service_is_never_asked_through_a_proxy(around):
    """A corporate image may set one for every service: it would get the role's keys, or answer with those of its own machine."""
    around.answers = [around.registered(), GONE]
    nowhere = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    around.run(IMDS=around.url.replace("127.0.0.1", "localhost"), **nowhere)
    assert around.asked == ["", ""]


def test_to_an_http_api_it_signs_for_api_gateway(around):
    around.service, around.answers = "execute-api", [around.registered(), GONE]
    around.run(REGISTER_SERVICE="execute-api")
    assert around.asked == ["", ""]


def test_what_is_signed_for_another_service_is_noticed(around):
    around.service, around.answers = "execute-api", [GONE]
    around.run(seconds=3)
    assert "not signed by this role for execute-api" in around.asked[0]


def test_no_secret_is_said_or_passed_where_others_can_see_it(around):
    around.answers = [around.registered(), GONE]
    said = around.run()
    [call] = around.java_calls()
    for secret in (SECRET, "secret/with+signs=", "session-token"):
        assert secret not in said
        assert secret not in call["arguments"]
        assert secret not in call["environment"]


def test_what_is_not_wanted_powers_itself_off_and_leaves_no_secret(around):
    around.answers = [around.registered(), GONE]
    said = around.run()
    assert around.powered_off
    assert "powering off: the agent was given up (410)" in said
    assert not (around.directory / "run").exists()


def test_a_forbidden_instance_powers_itself_off(around):
    around.answers = [(403, {"message": "the instance is not of fleet f"})]
    assert "powering off: the instance is not of fleet f (403)" in around.run()
    assert (around.powered_off, around.java_calls()) == (True, [])


def test_an_answer_that_is_not_the_autoscaler_s_own_ends_nothing(around):
    """A denied request is AWS' own 403, and a proxy may say anything: the build that runs here must not pay for it."""
    around.answers = [DENIED_BY_AWS, (410, {"Message": "gone"}), around.registered(), DENIED_BY_AWS, GONE]
    said = around.run(seconds=30)
    assert len(around.asked) == 5
    assert len(around.java_calls()) == 1
    assert f"no identity yet: AWS answered 403: {DENIED_BY_AWS[1]['Message']}; asking again in 1 s" in said
    assert said.count("powering off") == 1


def test_once_registered_not_even_our_own_refusal_powers_it_off(around):
    around.answers = [around.registered(), (403, {"message": "the instance is not of fleet f"}), around.registered(), GONE]
    said = around.run(seconds=20, **AT_ONCE)
    assert len(around.java_calls()) == 2
    assert "refused, and registered before: the autoscaler answered 403: the instance is not of fleet f; asking again" in said


def test_an_answer_that_names_no_node_is_none(around):
    around.answers = [(200, {"Message": "please log in"}), around.registered(), GONE]
    around.run(**AT_ONCE)
    assert len(around.java_calls()) == 1


@pytest.mark.parametrize(
    "answer", [TOO_EARLY, (503, {"message": "no answer"}), (409, {"message": "no free slot"}), (500, {}), (429, {})], ids=str
)
def test_anything_else_is_asked_again(around, answer):
    around.answers = [answer, answer, around.registered(), GONE]
    around.run(seconds=20, **AT_ONCE)
    assert len(around.asked) == 4
    assert len(around.java_calls()) == 1


def test_an_instance_that_nobody_registers_powers_itself_off_after_twice_its_boot_deadline(around):
    """The autoscaler ends it at its deadline, unless it gives all boots more time."""
    around.answers = [TOO_EARLY]
    said = around.run(BOOT_TIMEOUT_SECONDS="1")
    assert around.powered_off
    assert f"powering off: not registered within 2 s; the autoscaler answered 425: {TOO_EARLY[1]['message']}" in said


def test_an_instance_that_is_told_503_waits_beyond_its_boot_deadline(around):
    """Jenkins lets nobody register: the machine is not at fault, and is wanted once that is over."""
    around.answers = [(503, {"message": "Jenkins refused the credentials (401)"})] * 3 + [around.registered(), GONE]
    around.run(seconds=20, BOOT_TIMEOUT_SECONDS="0", **AT_ONCE)
    assert len(around.java_calls()) == 1


def test_without_credentials_it_asks_again_and_gives_up_at_the_deadline(around):
    around.answers, around.imds = [around.registered()], False
    said = around.run(BOOT_TIMEOUT_SECONDS="2")
    assert (around.asked, around.powered_off) == ([], True)
    assert "no identity yet: the instance metadata service answered 403: it is off (MetadataOptions); asking again" in said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"REGISTER_URL": "http://no-such-host.invalid/register"}, "no-such-host.invalid: DNS: "),
        ({"REGISTER_URL": "http://127.0.0.1:9/register"}, "127.0.0.1:9: connection refused"),
        ({"REGISTER_URL": "PLAIN/register"}, ": TLS: "),
        (
            {"http_proxy": "http://127.0.0.1:9", "REGISTER_URL": "http://a.invalid/"},
            "a.invalid through the proxy 127.0.0.1:9: connection refused",
        ),
        ({"IMDS": "http://127.0.0.1:9"}, "the instance metadata service does not answer (127.0.0.1:9: connection refused)"),
    ],
    ids=["DNS", "refused", "TLS", "proxy", "metadata"],
)
def test_what_keeps_it_from_being_told_who_it_is_is_named_on_the_console(around, settings, said):
    around.answers = [around.registered()]
    settings = {name: value.replace("PLAIN", around.url.replace("http:", "https:")) for name, value in settings.items()}
    told = around.run(BOOT_TIMEOUT_SECONDS="1", **settings)
    last = [line for line in told.splitlines() if "powering off" in line]
    assert all(said in line for line in last), told
    assert len(last) == 1
    assert "(000)" not in told


def test_what_answers_in_place_of_the_autoscaler_is_named(around):
    around.answers = [(502, {"Message": ""}), GONE]
    assert "no identity yet: something on the way (BaseHTTP" in around.run()


def test_once_registered_a_lost_connection_is_no_reason_to_power_off(around):
    around.answers = [around.registered(), TOO_EARLY, around.registered(), GONE]
    around.run(seconds=20, BOOT_TIMEOUT_SECONDS="0", **AT_ONCE)
    assert len(around.java_calls()) == 2


def test_a_controller_that_gives_no_agent_jar_is_asked_again(around):
    around.answers, around.jar_status = [around.registered(), GONE], 503
    said = around.run()
    assert around.java_calls() == []
    assert f"agent.jar cannot be fetched from {around.url}/jenkins/: answered 503 by BaseHTTP" in said


def test_the_autoscaler_is_told_why_the_last_connection_failed(around):
    """It knows that a machine does not connect, and the machine knows why."""
    (around.directory / "java").write_text("#!/bin/sh\necho 'SEVERE: 403 Forbidden'\necho '\tat hudson.Main'\nexit 1\n", encoding="utf-8")
    around.answers = [around.registered(), around.registered(), GONE]
    around.run(seconds=20, **AT_ONCE)
    assert [json.loads(body).get("problem") for body in around.bodies] == [
        None,
        *["Java ended with status 1: SEVERE: 403 Forbidden"] * 2,
    ]


@pytest.mark.needs("root")
def test_what_a_build_plants_where_root_writes_tricks_nobody(around):
    """A FIFO where the answer is written, links where the secret and the jar are: all in one directory, which must not be theirs."""
    run, victim = around.directory / "run", around.directory / "victim"
    victim.write_text("root's own", encoding="utf-8")
    victim.chmod(0o600)
    around.builds_run(f"""
        mv {run} {run}.old; rm -rf {run}/*; mkfifo {run}/{MAIN} {run}/other
        for name in {MAIN}/secret {MAIN}/agent.jar {MAIN} secret; do ln -sf {victim} {run}/$name; done
        echo mine > {run}/{MAIN}/secret; echo mine > {run}/{MAIN}/agent.jar; chmod 777 {run} {run}/{MAIN} {run}/{MAIN}/secret
    """)
    around.answers = [around.registered(), around.registered(), GONE]
    around.run(seconds=20, AGENT_USER=BUILDS)
    assert around.powered_off
    assert [call["secret"] for call in around.java_calls()] == [SECRET, SECRET]
    assert [call["mode"] for call in around.java_calls()] == ["-rw-------"] * 2
    assert (victim.read_text(encoding="utf-8"), stat.S_IMODE(victim.stat().st_mode), victim.owner()) == ("root's own", 0o600, "root")
    assert not run.exists()


@pytest.mark.needs("root")
def test_a_run_directory_that_the_build_user_owned_is_made_anew(around):
    run, victim = around.directory / "run", around.directory / "victim"
    victim.write_text("root's own", encoding="utf-8")
    run.mkdir()
    (run / MAIN).symlink_to(around.directory)
    (run / "secret").symlink_to(victim)
    os.mkfifo(run / "answer")
    shutil.chown(run, BUILDS)
    around.answers = [around.registered(), GONE]
    around.run(AGENT_USER=BUILDS)
    assert [call["secret"] for call in around.java_calls()] == [SECRET]
    assert victim.read_text(encoding="utf-8") == "root's own"


@pytest.mark.needs("root")
def test_builds_run_as_their_user_who_can_change_neither_the_jar_nor_the_directory(around):
    run = around.directory / "run"
    files = (run, run / MAIN, run / MAIN / "agent.jar", run / MAIN / "secret")
    around.builds_run(f"(stat -c '%n %U %a' {' '.join(map(str, files))}; id -un) >>{around.directory}/seen")
    around.answers = [around.registered(), GONE]
    around.run(AGENT_USER=BUILDS)
    seen = (around.directory / "seen").read_text(encoding="utf-8").splitlines()
    assert seen == [f"{run} root 711", f"{files[1]} root 711", f"{files[2]} root 644", f"{files[3]} {BUILDS} 600", BUILDS]


@pytest.mark.parametrize("setting", ["REGISTER_URL", "REGION"])
def test_a_setting_that_is_missing_is_named(around, setting):
    assert f"{setting}: is missing" in around.run(**{setting: ""})


@pytest.mark.needs("shellcheck")
def test_the_script_passes_shellcheck():
    scripts = [ROOT / ".ci/run", ROOT / ".ci/stranger", ROOT / "layers/core/bytecode.sh"]
    assert all(path.stat().st_mode & stat.S_IXUSR for path in scripts)
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_installer_waits_for_an_update_that_an_image_makes_at_its_first_boot(tmp_path):
    """Another apt-get holds the lock on the lists, and `DPkg::Lock::Timeout` is not about that one."""
    apt = tmp_path / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\ncase "$*" in *update) [ "$(wc -l < {tmp_path}/calls)" -ge 3 ] ;; esac\n')
    apt.chmod(0o755)
    text = (ROOT / "agent" / "linux" / "install").read_text(encoding="utf-8")
    functions = text[text.index("again() {") : text.index("java_is_new_enough || install_package")]
    script = f"sleep() {{ :; }}\ncommand() {{ false; }}\n{functions}\ninstall_package none openjdk"
    subprocess.run(["sh", "-euc", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True)
    assert [call.split()[-1] for call in (tmp_path / "calls").read_text(encoding="utf-8").splitlines()] == [*["update"] * 3, "openjdk"]


@pytest.mark.needs("shellcheck")
def test_what_installs_it_passes_shellcheck_too():
    script = "#!/bin/sh\nREGISTER_URL=u\nREGION=r\nBOOT_TIMEOUT_SECONDS=900\n" + installer("linux")
    done = subprocess.run(["shellcheck", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
