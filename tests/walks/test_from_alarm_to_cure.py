"""Walks of the person on call: from a message at night to its cause, its cure and jobs that run.

The fleet works meanwhile, and other things are wrong that are not the cause. Each walk follows only what the message, the commands that
it names, `status` and the runbook say. Its transcript is kept beside this file.
"""

import shutil

import pytest

from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from support.on_call import a_night, commands_in, is_as_kept, line_of, runbook, see_more

GPU = "mxnetlinux-gpu"
TYPES = ("g4dn.8xlarge", "g5.8xlarge", "g3.8xlarge")


@pytest.fixture
def night(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fleet_file = tmp_path / "fleet.yaml"
    shutil.copy(EXAMPLE_FLEET, fleet_file)
    with a_night(fleet_file) as night:
        night.small_troubles()
        yield night


def gpu_jobs(night, label=GPU):
    return [night.jenkins.submit(f"unix-gpu/PR-{number}", label, 900.0) for number in range(3)]


def test_agents_that_do_not_boot(night):
    ec2, boots = night.here.world.ec2, night.here.world.ec2.on_running

    def ends_at_once(instance):
        if instance.tags["autoscaler:pool"] != GPU:
            return boots(instance)
        instance.state_reason = "Client.InvalidKMSKey.InvalidState"
        return ec2.end(instance)

    ec2.on_running = ends_at_once
    jobs = gpu_jobs(night)

    subject, text = night.waits_for("do not boot")
    assert GPU in subject
    why = night.types(see_more(text))
    assert "has been broken" in why.splitlines()[0]
    cause = "Client.InvalidKMSKey.InvalidState"
    assert cause in text
    assert cause in why
    assert GPU in night.types("autoscaler status").splitlines()[0]
    steps = night.reads(runbook(text), about=cause)
    assert "KMS key" in steps
    night.does("the key's policy lets the functions' role use it again", lambda: setattr(ec2, "on_running", boots))
    night.types(line_of(text, "Once it is mended:"))
    night.served(jobs, most=12)
    night.is_over(f"agents of {GPU} do not boot")
    status = night.types("autoscaler status")
    assert "broken" not in status
    assert "boot failures" not in status
    assert not [subject for subject, _ in night.here.told() if "boot failures" in subject]
    is_as_kept("agents_do_not_boot", night.transcript)


def test_ec2_has_no_machines(night):
    night.here.world.ec2.capacity |= {f"{kind}//on-demand": 0 for kind in TYPES}
    jobs = gpu_jobs(night)

    subject, text = night.waits_for("EC2 has no machines")
    assert GPU in subject
    code = "InsufficientInstanceCapacity"
    assert code in text
    assert code in night.types(see_more(text)).splitlines()[0]
    assert f"EC2 has no machines for {GPU}" in night.types("autoscaler status")
    steps = night.reads(runbook(text), about=code)
    assert "instance_types" in steps
    night.edits("g6.8xlarge is added to the pool's instance_types", ", ".join(TYPES), ", ".join([*TYPES, "g6.8xlarge"]))
    night.served(jobs, most=12)
    night.is_over("EC2 has no machines")
    is_as_kept("ec2_has_no_machines", night.transcript)


def test_a_label_that_no_pool_serves(night):
    jobs = gpu_jobs(night, label="mxnetlinux-gpu-t4")

    _, text = night.waits_for("no pool serves mxnetlinux-gpu-t4")
    why = night.types(see_more(text))
    assert "mxnetlinux-gpu-t4" in why.splitlines()[0]
    night.types("autoscaler status")
    steps = night.reads(runbook(text), about="autoscaler match")
    [match] = [command for command in commands_in(steps) if command.startswith("autoscaler match")]
    said = night.types(match.replace("EXPRESSION", "mxnetlinux-gpu-t4"))
    assert GPU in said
    labels = "    labels: [mxnetlinux-gpu, mxnetlinux-gpu-t4]\n"
    night.edits("the pool is given the label", f"  {GPU}:\n", f"  {GPU}:\n{labels}")
    night.served(jobs, most=12)
    is_as_kept("no_pool_serves_a_label", night.transcript)


def test_jenkins_starts_nothing(night):
    night.jenkins.quiet_down("upgrade of the plugins")
    jobs = gpu_jobs(night)

    subject, text = night.waits_for("quiet mode")
    assert "main" in subject
    assert "upgrade of the plugins" in text
    assert "quiet mode" in night.types(see_more(text))
    assert "quiet mode" in night.types("autoscaler status")
    steps = night.reads(runbook(text), about="cancelQuietDown")
    assert "Manage Jenkins" in steps

    def cancelled():
        night.jenkins.quieting_down = False
        night.jenkins.schedule()

    night.does("Manage Jenkins: quiet mode is cancelled", cancelled)
    night.is_over("main is in quiet mode")
    night.served(jobs, most=12)
    is_as_kept("jenkins_starts_nothing", night.transcript)
