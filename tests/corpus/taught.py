"""Series made by hand, of what ends of builds teach."""

from collections.abc import Iterator

from autoscaler.domain.facts.runs import BuildResult
from autoscaler.domain.facts.snapshot import Build
from corpus.case import Answers, Asks, Look
from corpus.hand import MINUTE, long_known, look
from support.builders import NOW, a_build, a_fleet, a_pool, a_snapshot, a_view, an_agent

_FLEET = a_fleet(a_pool(min_agents=2))
_GOOD, _BAD = BuildResult.SUCCEEDED, BuildResult.FAILED


def configurations_of_a_matrix_fail_on_one_machine() -> Iterator[Look]:
    """They are one job, for which no machine is blamed, though another one succeeds elsewhere."""
    failing = [_configuration(name, 120.0) for name in "abc"]
    others = [a_build(f"b{number}", elapsed_seconds=60.0) for number in range(20)]
    other = _configuration("d", 1.0)
    ends = dict.fromkeys([one.run for one in failing], _BAD) | dict.fromkeys(
        [one.run for one in others], _GOOD
    )
    yield from long_known(_FLEET)
    yield _learn(NOW, failing, others)
    yield _learn(NOW + MINUTE, (), (other,), ends)
    yield _learn(NOW + 2 * MINUTE, (), (), {other.run: _GOOD})
    yield look(Asks.DOWN, _FLEET, _seen((), ()), NOW + 2 * MINUTE + 1.0)


def _configuration(name: str, seconds: float) -> Build:
    configuration = f"os={name},gpu=yes"
    return a_build(
        f"team/app/{configuration}",
        run=f"job/team/job/app/{configuration}/1",
        elapsed_seconds=seconds,
    )


def _learn(at, first, second, results=None):
    answers = Answers(results=results or {})
    return look(Asks.LEARN, _FLEET, _seen(first, second), at, answers={"main": answers})


def _seen(first, second):
    agents = [an_agent(1, builds=tuple(first)), an_agent(2, builds=tuple(second))]
    view = a_view(*(node for _, node in agents))
    return a_snapshot(view, records=tuple(record for record, _ in agents))


TAUGHT = (configurations_of_a_matrix_fail_on_one_machine,)
