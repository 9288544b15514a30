"""Kinds in the fleet file: which is a speciality of which, what labels follow, and the one line in which the rest is refused."""

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.fleet import Lending
from autoscaler.errors import ConfigError

HEAD = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers: {main: {url: https://jenkins.example.org/}}
defaults: {}
"""
MACHINE = "executors: 1, launch_template: t, instance_types: [c5.large], max_agents: 5"


def load(tmp_path, kinds, pools, head=HEAD):
    path = tmp_path / "fleet.yaml"
    lines = "".join(f"  {name}: {{{MACHINE}, {more}}}\n" for name, more in pools.items())
    path.write_text(f"{head}kinds: {{{kinds}}}\npools:\n{lines}", encoding="utf-8")
    return load_fleet(path).pools


def test_modifiers_compose_and_a_speciality_carries_the_labels_of_all_that_is_more_general_only_while_it_is_lent(tmp_path):
    kinds = "amd64: {labels: [amd64, linux]}, amd64+gfx1030: {}, amd64+big: {}, amd64+gfx1030+big: {}"
    pools = load(tmp_path, kinds, {"cpu": "kind: amd64", "rare": "kind: amd64+gfx1030+big, labels: [debian]"})
    assert (pools["cpu"].labels, pools["cpu"].lent_labels) == ({"amd64", "linux"}, frozenset())
    assert pools["rare"].labels == {"amd64+gfx1030+big", "gfx1030", "big", "debian"}
    assert pools["rare"].lent_labels == {"amd64", "linux", "amd64+gfx1030", "amd64+big"}


def test_a_kind_may_name_what_it_is_a_speciality_of_and_that_goes_on(tmp_path):
    kinds = "cpu: {}, gpu: {of: [cpu]}, gpu-p3: {of: [gpu]}"
    pools = load(tmp_path, kinds, {"p3": "kind: gpu-p3, usd_per_hour: 4"})
    assert (pools["p3"].labels, pools["p3"].lent_labels) == ({"gpu-p3"}, {"gpu", "cpu"})


@pytest.mark.parametrize(
    ("more", "lending"),
    [
        ("usd_per_hour: 1.5", Lending.NEVER),
        ("usd_per_hour: 0.9", Lending.IDLE),
        ("usd_per_hour: 1.5, executors: 2", Lending.IDLE),
        ("usd_per_hour: 1.5, lend: idle", Lending.IDLE),
        ("usd_per_hour: 0.5, lend: never", Lending.NEVER),
        ("usd_per_hour: 1.5, lend: always", Lending.ALWAYS),
    ],
)
def test_what_is_dearer_is_not_lent_unless_its_operator_says_so(tmp_path, more, lending):
    machine = MACHINE.replace("executors: 1, ", "") if "executors" in more else MACHINE
    pools = load(tmp_path, "gpu: {}, gpu-p3: {of: [gpu]}", {"plain": "kind: gpu, usd_per_hour: 1", "rare": "kind: gpu-p3, lend: idle"})
    assert pools["rare"].lend is Lending.IDLE
    path = tmp_path / "fleet.yaml"
    text = f"{HEAD}kinds: {{gpu: {{}}, gpu-p3: {{of: [gpu]}}}}\npools:\n  plain: {{{MACHINE}, kind: gpu, usd_per_hour: 1}}\n"
    path.write_text(f"{text}  rare: {{{machine}, kind: gpu-p3, {more}}}\n", encoding="utf-8")
    assert load_fleet(path).pools["rare"].lend is lending


def test_where_no_pool_is_of_the_general_kind_nothing_is_lent_unless_its_operator_says_so(tmp_path):
    assert load(tmp_path, "gpu: {}, gpu-p3: {of: [gpu]}", {"rare": "kind: gpu-p3"})["rare"].lend is Lending.NEVER


@pytest.mark.parametrize(
    ("kinds", "more", "line"),
    [
        ("", "kind: gpu", "pools.p.kind (gpu) is not one of kinds (there are none)"),
        ("cpu: {}", "kind: gpu", "pools.p.kind (gpu) is not one of kinds (cpu)"),
        ("gpu: {of: [cpu]}", "kind: gpu", "kinds.gpu.of (cpu) is not one of kinds (gpu)"),
        ("gpu: {of: [gpu]}", "kind: gpu", "kinds.gpu.of (gpu) is the kind itself"),
        ("a: {of: [b]}, b: {of: [a]}", "kind: a", "kinds.a.of (b): each would be a speciality of the other"),
        ("a b: {}", "kind: a", "kinds.a b ('a b'): must be parts of letters, digits, dots, hyphens and underscores with a + between them"),
        ("", "lend: idle", "pools.p.lend (idle): the pool has no kind that is a speciality of another one"),
        ("gpu: {}", "kind: gpu, lend: idle", "pools.p.lend (idle): the kind gpu is no speciality of another one"),
        ("gpu: {}", "kind: gpu, lend: often", "pools.p.lend ('often'): must be never, idle or always"),
        (
            "amd64: {}, amd64+x: {}",
            "kind: amd64+x, labels: [amd64]",
            "pools.p.labels (amd64): it is a label of the kind amd64, which agents of amd64+x carry only while they are lent",
        ),
        ("gpu: {labels: []}", "kind: gpu", "kinds.gpu.labels"),
        ("gpu: {off: [cpu]}", "kind: gpu", "kinds.gpu.off: unknown key"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, kinds, more, line):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, kinds, {"p": more})
    assert line in str(refused.value)


def test_agents_on_static_nodes_are_not_lent(tmp_path):
    head = HEAD.replace("example.org/}", "example.org/, nodes: slots}")
    with pytest.raises(ConfigError, match=r"pools\.p\.lend \(idle\): agents on static nodes \(nodes: slots\) are not lent"):
        load(tmp_path, "gpu: {}, gpu-p3: {of: [gpu]}", {"p": "kind: gpu-p3, lend: idle"}, head)
    assert load(tmp_path, "gpu: {}, gpu-p3: {of: [gpu]}", {"p": "kind: gpu-p3"}, head)["p"].lend is Lending.NEVER


@pytest.mark.parametrize(
    ("controllers", "line"),
    [
        ("{main: {url: https://a.example.org/}}", "pools.p.share (rotate): the pool serves one controller only"),
        (
            "{main: {url: https://a.example.org/}, other: {url: https://b.example.org/, nodes: slots}}",
            "pools.p.share (rotate): agents on static nodes (nodes: slots) stay where they are",
        ),
    ],
)
def test_what_cannot_be_shared_is_said_in_one_line(tmp_path, controllers, line):
    head = HEAD.replace("{main: {url: https://jenkins.example.org/}}", controllers)
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, "", {"p": "share: rotate"}, head)
    assert line in str(refused.value)
