"""Loads that no trace has, drawn from a fixed seed: short jobs in bursts, and more long jobs than a full fleet can take."""

from random import Random

from autoscaler_workbench.simulate.traces import Row, Trace

BEGIN = 1_800_000_000.0  # a Friday, 08:00 UTC
_DAY = 86_400.0


def short_jobs(hours: float) -> Trace:
    """Jobs of 20 s to 4 minutes, some of them in bursts of thirty, others as each hour strikes; nights are quiet."""
    chance, rows, at = Random(30), list[Row](), 0.0
    while at < hours * 3600:
        at += chance.expovariate(1 / 45 if at % _DAY < _DAY / 2 else 1 / 600)
        many = 30 if chance.random() < 0.01 else 1
        label = chance.choice(["cpu", "cpu", "cpu && linux", "gpu", None])
        rows += [_row(at, chance.uniform(20, 240), label, f"quick-{chance.randrange(12)}") for _ in range(many)]
    rows += [_row(hour * 3600.0, 90.0, "gpu", "hourly") for hour in range(int(hours))]
    return _trace("short jobs", rows)


def long_jobs(hours: float) -> Trace:
    """Jobs of 10 minutes to 6 hours, more than twenty agents can take; a few of them follow one another."""
    chance, rows, at = Random(31), list[Row](), 0.0
    while at < hours * 3600:
        at += chance.expovariate(1 / 110)
        label = chance.choice(["cpu", "cpu", "gpu", "linux && !gpu"]) if len(rows) % 40 else "nobody-has-this"
        seconds = min(6 * 3600.0, 600.0 * chance.paretovariate(1.1))
        run = f"build#{len(rows)}" if chance.random() < 0.3 else ""
        rows.append(_row(at, seconds, label, f"long-{chance.randrange(8)}", run, "first"))
        if run:
            rows.append(_row(at + seconds, seconds / 2, "gpu", "long-after", run, "second", "first"))
    return _trace("long jobs", rows)


def _row(at: float, seconds: float, label: str | None, job: str, run: str = "", stage: str = "", depends_on: str = "") -> Row:
    return Row(
        queued_at=BEGIN + round(at, 1),
        duration_seconds=round(seconds, 1),
        label=label,
        job=job,
        run=run,
        stage=stage,
        depends_on=depends_on,
    )


def _trace(name: str, rows: list[Row]) -> Trace:
    return Trace(name=name, start_at=BEGIN, judged_at=BEGIN, rows=tuple(sorted(rows, key=lambda row: row.queued_at)), dropped=0)
