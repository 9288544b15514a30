"""``python -m corpus.changed``: one change in recorded cases, for branches that none of them takes.

A change is tried on the cases that come to such a branch, the shortest first, in all looks and in
the last one. Of what takes it a candidate is made for ``corpus.fill``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, product, starmap

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.nodes import Mark, MarkClass
from autoscaler.domain.facts.snapshot import ControllerView, OfflineCause
from autoscaler.domain.facts.telemetry import Devices
from corpus.branches import arcs_of
from corpus.candidates import FOLDER
from corpus.case import Case, Look, Recorded, archives, lines_of, read, written
from corpus.fill import missed_branches
from corpus.impossible import function_at
from corpus.play import play
from corpus.power import index

_MOST_TRIED = 40  # cases that come to one branch


def jobs_of_lost_builds_are_gone(look: Look) -> Look:
    lost = {key: replace(one, job=None) for key, one in look.facts.lost.items()}
    return replace(look, facts=replace(look.facts, lost=lost))


def starts_were_just_asked_for(look: Look) -> Look:
    """Jenkins shows none of them."""
    at = look.facts.taken_at - 10.0
    lost = {
        key: replace(
            one,
            job=one.job and replace(one.job, entries=()),
            rerun=one.rerun and replace(one.rerun, created_at=at),
        )
        for key, one in look.facts.lost.items()
    }
    return replace(look, facts=replace(look.facts, lost=lost))


def graphs_show_no_steps(look: Look) -> Look:
    answers = dict(look.answers)
    for name, answer in answers.items():
        graphs = answer.graphs.read.items()
        read = {
            run: graph and replace(graph, blocks=(), shows_steps=False) for run, graph in graphs
        }
        answers[name] = replace(answer, graphs=replace(answer.graphs, read=read))
    return replace(look, answers=answers)


def one_of_several_idle_agents_refuses(look: Look) -> Look:
    """It carries our mark already."""
    text = Mark(fleet=look.fleet.name, kind=MarkClass.REFUSES, pass_id="p").text
    views = {name: _with_mark(view, text) for name, view in look.facts.controllers.items()}
    return replace(look, facts=replace(look.facts, controllers=views))


def _with_mark(view: ControllerView, text: str) -> ControllerView:
    idle = [node for node in view.nodes if node.idle and node.executors and not node.offline]
    if len(idle) < 2:
        return view
    marked = replace(
        idle[0],
        offline=True,
        temporarily_offline=True,
        cause=OfflineCause.PERSON,
        reason=text,
    )
    return replace(view, nodes=tuple(marked if node is idle[0] else node for node in view.nodes))


def machines_serve_all_and_have_no_device(look: Look) -> Look:
    none = Devices(told_at=look.facts.taken_at, devices=())
    devices = {record.machine: none for record in look.facts.records}
    pools = {
        name: replace(pool, share=Share.COOPERATIVE) for name, pool in look.fleet.pools.items()
    }
    facts = replace(look.facts, devices=devices)
    return replace(look, facts=facts, fleet=replace(look.fleet, pools=pools))


# By the function that has the branch.
_CHANGES: Mapping[str, tuple[Callable[[Look], Look], ...]] = {
    "find": (jobs_of_lost_builds_are_gone, starts_were_just_asked_for),
    "_hear": (graphs_show_no_steps,),
    "_allowed_refusing": (one_of_several_idle_agents_refuses,),
    "_for_forecast": (machines_serve_all_and_have_no_device,),
}


def changed(case: Case, change: Callable[[Look], Look]) -> Iterator[Case]:
    """A case with a change in all looks, and with one in the last."""
    *before, last = case.looks
    name = f"{change.__name__.replace('_', ' ')}: {case.name}"
    yield replace(case, name=name, looks=tuple(map(change, case.looks)))
    if before:
        yield replace(case, name=f"at last {name}", looks=(*before, change(last)))


def main() -> None:
    missed = missed_branches()
    lines = [line for archive in archives() for line in lines_of(archive)]
    at = index(lines)
    with (FOLDER / "branches-changed.jsonl").open("w", encoding="utf-8") as file:
        for place, line, _ in sorted(missed):
            numbers = sorted(at.get(place, {}).get(line, ()), key=lambda number: len(lines[number]))
            cases = [read(lines[number]).case for number in numbers[:_MOST_TRIED]]
            changes = _CHANGES.get(function_at(place, line), ())
            for case in chain.from_iterable(starmap(changed, product(cases, changes))):
                if taken := missed & arcs_of(lambda: list(play(case))):  # noqa: B023 - at once
                    missed -= taken
                    file.write(f"{written(Recorded(case=case))}\n")
                    print(len(missed), case.name, *sorted(taken), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
