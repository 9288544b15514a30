"""A fleet file with many mistakes is told all of them at once; what is odd, but may be meant, is a warning."""

import pytest

from autoscaler.config import FleetFileError, load_fleet
from autoscaler.config.load import architecture
from autoscaler.config.yaml_file import parse
from autoscaler_workbench.advice import readable, warnings_in

MISTAKES = """\
fleet: My_CI
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000, max_wait_seconds: 5}
controllers:
  main:
    url: https://anna:hunter2@jenkins.example.org/
defaults: {wait_usd: 20, quarantine: of}
pools:
  linux:
    executers: 4
    launch_template: x
    instance_types: [m7i.large]
    max_agents: 3
  arm:
    executors: 2
    launch_template: x
    instance_types: [m7g.large, m7i.large]
    max_agents: 4
    controllers: [mian]
  gpu:
    executors: 2
    launch_template: x
    instance_types: [g5.xlrage]
    max_agents: 400
    min_agents: 500
"""
TOLD = [
    "1:8: fleet ('My_CI'): must be lower-case letters",
    "2:22: the pools' min_agents (500) together exceed limits.max_agents (10)",
    "2:101: limits.max_wait_seconds: unknown key here, it belongs in defaults or a pool",
    "5:10: controllers.main.url (https://***@jenkins.example.org/) must not hold credentials",
    "6:12: defaults.wait_usd: unknown key, did you mean wait_usd_per_hour?",
    "6:38: defaults.quarantine ('of'): must be replace, keep or off, did you mean off?",
    "9:5: pools.linux.executers: unknown key, did you mean executors?",
    "16:5: pools.arm.instance_types (m7g.large is arm64, m7i.large is x86_64)",
    "18:5: pools.arm.controllers (mian) is not one of the controllers (main), did you mean main?",
    "22:22: pools.gpu.instance_types (g5.xlrage): no linux price is carried for it, set usd_per_hour, did you mean g5.xlarge?",
    "23:17: pools.gpu.max_agents (400) exceeds limits.max_agents (10)",
    "24:17: pools.gpu.min_agents (500) exceeds max_agents (400)",
]
RIGHT = """\
fleet: f
limits: {max_agents: 9, max_launches_per_hour: 9, max_usd_per_hour: 10, max_usd_per_month: 3000}
controllers:
  main: {url: https://jenkins.example.org/, secret: jenkins/main}
  other: {url: https://other.example.org/, secret: jenkins/other}
pools:
  cpu: {labels: [linux], executors: 4, launch_template: x, instance_types: [c5.large], max_agents: 5, controllers: [main]}
  big: {labels: [big], executors: 4, launch_template: x, instance_types: [c5.18xlarge], max_agents: 5, subnets: [subnet-0a1b2c3d]}
"""


def written(tmp_path, text):
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path):
    path = written(tmp_path, MISTAKES)
    with pytest.raises(FleetFileError) as refused:
        load_fleet(path)
    for line, told in zip(refused.value.lines, TOLD, strict=True):
        assert line.startswith(f"{path}:{told}")
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_right_file_has_no_warnings_and_linux_agents_unless_it_says_otherwise(tmp_path):
    path = written(tmp_path, RIGHT)
    assert warnings_in(path) == []
    assert load_fleet(path).pools["cpu"].platform == "linux"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "secret: jenkins/main",
            "secret: prod/main",
            "4:53: controllers.main.secret (prod/main): the functions may read only secrets whose",
        ),
        ("https://other", "http://other", "5:16: controllers.other.url (http://other.example.org/): over http the token is sent"),
        ("subnet-0a1b2c3d", "subnet-a", "8:114: pools.big.subnets (subnet-a): ids of EC2 have 8 or 17 hexadecimal digits"),
        ("[big]", "[linux]", "8:9: pools.big.labels (linux): pool cpu has the same labels for main; the one that suits better gets a job"),
        ("usd_per_hour: 10", "usd_per_hour: 3", "8:3: pools.big: one agent costs $3.07 an hour, more than limits.max_usd_per_hour ($3.00)"),
        (
            "[c5.18xlarge]",
            "[c5.18xlarge], min_agents: 2",
            "2:92: limits.max_usd_per_month ($3,000): min_agents and warm_executors alone cost",
        ),
        ("[c5.18xlarge]", "[c5.18xlarge], warm_executors: 5", "in a whole month"),
    ],
    ids=lambda value: value[:25],
)
def test_what_may_be_meant_is_a_warning(tmp_path, old, new, line):
    [warning] = warnings_in(written(tmp_path, RIGHT.replace(old, new)))
    assert line in warning


def test_static_nodes_of_two_pools_with_the_same_labels_cannot_be_told_apart(tmp_path):
    text = RIGHT.replace("[big]", "[linux]").replace("secret: jenkins/main", "secret: jenkins/main, nodes: slots")
    [warning] = warnings_in(written(tmp_path, text))
    assert warning.endswith("on main every static node counts as big's")


def test_minima_that_cost_more_an_hour_than_the_limit_are_refused(tmp_path):
    path = written(tmp_path, RIGHT.replace("[c5.18xlarge]", "[c5.18xlarge], min_agents: 4"))
    with pytest.raises(FleetFileError, match=r"2:69: the pools' min_agents \(big\) together cost \$12\.28 an hour, which exceeds"):
        load_fleet(path)


@pytest.mark.parametrize(
    ("secret", "prefix", "may"),
    [
        ("jenkins/main", "jenkins/", True),
        ("jenkins", "jenkins/", False),
        ("arn:aws:secretsmanager:us-west-2:123456789012:secret:jenkins/main-a1b2c3", "jenkins/", True),
        ("arn:aws:secretsmanager:us-west-2:123456789012:secret:prod/main-a1b2c3", "jenkins/", False),
        ("prod/main", "prod/", True),
    ],
)
def test_which_secrets_the_functions_may_read(secret, prefix, may):
    assert readable(secret, prefix) is may


@pytest.mark.parametrize(
    ("kinds", "known"),
    [
        (
            "a1.large c7g.large c6gn.large m6gd.metal t4g.nano g5g.xlarge im4gn.large is4gen.large hpc7g.4xlarge x2gd.large c8gb.large",
            "arm64",
        ),
        ("c7i.large c7i-flex.large g4ad.xlarge g5.large gr6.4xlarge m7a.large p5en.48xlarge u7i-12tb.224xlarge p6-b200.48xlarge", "x86_64"),
    ],
)
def test_the_name_of_an_instance_type_tells_its_architecture(kinds, known):
    assert {architecture(kind) for kind in kinds.split()} == {known}


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-3", -3), ("1e3", 1000.0), ("1.5", 1.5), (".5", 0.5), ("010", "010"), ("true", True), ("off", "off"), ("~", None)],
)
def test_yaml_is_read_as_editors_read_it(text, value):
    assert parse(text) == value
    assert type(parse(text)) is type(value)
