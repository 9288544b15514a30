"""What waits in a controller's queue, and what Jenkins says it waits for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What Jenkins says an item waits for. All empty and ``for_executor``: any executor, or a label it did not name."""

    for_executor: bool
    label: str | None = None  # Jenkins' normalised text
    named: str | None = None  # a label or the only node that has it: Jenkins does not say which
    nodes: tuple[str, ...] = ()  # nodes that it would take if they were online
    unclear: str = ""  # Jenkins' words, where nobody here knows what they mean: plugins have their own


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """One entry of the queue. ``waiting_seconds``: since it became buildable, by the controller's own clock."""

    id: int
    job: str
    run: str
    label: str | None  # as the job has it; None: not told (pipelines), or no label
    labelless: bool  # the job is of a kind that tells its label, and has none
    wait: Wait
    buildable: bool
    waiting_seconds: float
    in_quiet_mode: bool = False  # it waits until its controller leaves quiet mode
    signature: str = ""  # what tells it apart from others of its job: a stage, or parameters; for people's statistics alone
    display: str = ""  # the name that people gave its job for display, if that is another than the job's own; to look it up by

    @property
    def asked_label(self) -> str | None:
        """The label expression that it asks for, from the job or from Jenkins' reason."""
        return self.label if self.label is not None else self.wait.label

    @property
    def starved(self) -> bool:
        """It waits for an executor and for nothing else."""
        return self.buildable and self.wait.for_executor

    @property
    def unclear(self) -> bool:
        """It is free to run, and waits for something that we do not understand."""
        return self.buildable and bool(self.wait.unclear)
