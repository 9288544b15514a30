"""Which job, node or pool a person means: names as people paste them, from a browser, a page's heading or a chat."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from autoscaler.domain.situation.situation import Situation

_DECODED_AT_MOST = 3  # a branch's name is encoded once in its own name, and once more in a URL
_PART_CHARACTERS = 3  # a shorter part of a name is in too many of them
_LISTED = 30
# "part of folder » job #12 (Unit tests)": the heading of a build, or of a pipeline's part in the queue.
_HEADING = re.compile(r"^(?:part of\s+)?(.+?)\s*#\d+\b.*$", re.DOTALL)
_BLUE_OCEAN = re.compile(r"/organizations/[^/]+/([^/]+)(?:/(?:detail|activity|branches)(?:/([^/]+))?)?")


def known_names(situation: Situation) -> dict[str, tuple[str, ...]]:
    """Name what can be asked for, with what else people call it: pools, nodes, instances, jobs that wait or run, items of the queue."""
    names: dict[str, tuple[str, ...]] = dict.fromkeys([*situation.fleet.pools, *situation.fleet.left_pools], ())
    for agent in situation.agents:
        names |= dict.fromkeys(filter(None, (agent.record.node, agent.record.instance_id)), ())
    for view in situation.views():
        jobs = [*((item.job, item.display) for item in view.items), *((b.job, b.display) for node in view.nodes for b in node.builds)]
        for job, display in jobs:
            if job:
                names[job] = tuple(dict.fromkeys((*names.get(job, ()), *filter(None, [display]))))
        names |= {node.name: names.get(node.name, ()) for node in view.nodes if node.agent}
    return names


def several(subject: str, names: Sequence[str], situation: Situation) -> list[str]:
    """List the names that a person may mean, jobs with how many builds of them wait and run."""
    waiting = Counter(item.job for view in situation.views() for item in view.items)
    running = Counter(build.job for view in situation.views() for node in view.nodes for build in node.builds if not build.is_one_off)
    lines = [f"{name}{_of_job(waiting[name], running[name])}" for name in names[:_LISTED]]
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return [f"{subject} may be any of these {len(names)}; ask for one of them:", *lines, *more]


def _of_job(waiting: int, running: int) -> str:
    counts = (f"{waiting} waiting" if waiting else "", f"{running} running" if running else "")
    return f" ({', '.join(filter(None, counts))})" if any(counts) else ""


def jobs_of_items(situation: Situation) -> dict[str, str]:
    """Name the job of each item of the queue by the item's id."""
    return {str(item.id): item.job for view in situation.views() for item in view.items if item.job}


def meant(subject: str, names: Mapping[str, Collection[str]], items: Mapping[str, str]) -> tuple[str, ...]:
    """Find the names that a person may mean, sorted; the subject itself if nothing is like it.

    ``names``: what is there, with what else each is called; ``items``: jobs by the id of their items. What is the same but for case and
    encoding goes before the end of a longer name, then comes a folder, then any part of a name.
    """
    if subject in names:
        return (subject,)
    forms = tuple(dict.fromkeys(_forms(subject, items)))
    keys = {name: tuple(dict.fromkeys(_key(other) for other in (name, *others))) for name, others in names.items()}
    for is_like in (_is_same, _is_end, _is_folder, _is_part):
        for form in forms:
            if like := sorted(name for name, of_name in keys.items() if any(is_like(key, form) for key in of_name)):
                return tuple(like)
    return (subject,)


def _is_same(key: str, form: str) -> bool:
    return key == form


def _is_end(key: str, form: str) -> bool:
    return key.endswith(f"/{form}")


def _is_folder(key: str, form: str) -> bool:
    return key.startswith(f"{form}/")


def _is_part(key: str, form: str) -> bool:
    return len(form) >= _PART_CHARACTERS and form in key


def _forms(subject: str, items: Mapping[str, str]) -> Iterator[str]:
    """Write a subject as names are compared, the most likely reading first."""
    text = subject.strip().strip("'\"`").strip()
    if path := _path_of(text):
        yield from filter(None, (_key(name) for name in _of_path(path, items)))
        return
    yield from filter(None, [_key(text)])
    if heading := _HEADING.match(text):
        yield _key(heading[1])


def _path_of(text: str) -> str:
    """Return the path of a URL, or of a part of one; "" if the text is none."""
    if re.match(r"^https?://", text, re.IGNORECASE):
        try:
            return urlsplit(text).path
        except ValueError:
            return ""
    return text.partition("?")[0] if re.match(r"^/?(job|computer)/", text) else ""


def _of_path(path: str, items: Mapping[str, str]) -> Iterator[str]:
    """Read the names that a path of Jenkins is about."""
    parts = [part for part in path.split("/") if part]
    if blue := _BLUE_OCEAN.search(path):
        pipeline, branch = unquote(blue[1]), unquote(blue[2] or "")
        yield from (f"{pipeline}/{branch}", pipeline) if branch else (pipeline,)
    elif "job" in parts:
        yield "/".join(_jobs_in(parts[parts.index("job") :]))
    elif "computer" in parts[:-1]:
        yield parts[parts.index("computer") + 1]
    elif parts[-3:-1] == ["queue", "item"]:
        yield items.get(parts[-1], "")


def _jobs_in(parts: list[str]) -> Iterable[str]:
    """Read the names of folders and the job: each comes after ``job``; views between them are no names."""
    rest = parts
    while len(rest) > 1 and rest[0] in {"job", "view"}:
        if rest[0] == "job":
            yield rest[1]
        rest = rest[2:]
    if rest and "=" in rest[0]:  # a configuration of a matrix
        yield rest[0]


def _key(name: str) -> str:
    """Write a name so that names alike are equal: decoded, with a slash for each », without regard to case and outer spaces."""
    for _ in range(_DECODED_AT_MOST):
        decoded = unquote(name)
        if decoded == name:
            break
        name = decoded
    parts = (" ".join(part.split()) for part in name.replace("»", "/").split("/"))
    return "/".join(filter(None, parts)).casefold()
