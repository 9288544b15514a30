"""Items of Jenkins' queue that are followed until their builds begin, where a version may drop them on their way to an agent."""

from dataclasses import dataclass

from autoscaler.domain.facts.runs import Parameter, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedItem:
    """One queue item that is followed. ``run``: of the pipeline that waits for it, as a node block; "" for any other job."""

    controller: str
    item: int
    job: str  # path
    run: str
    pool: str
    session: str  # of the controller
    at: float  # when it entered the queue, by the controller's clock
    seen_at: float  # when a look last found it in the queue
    parameters: tuple[Parameter, ...] | None  # None: too long to be kept
    upstream: tuple[str, ...] = ()
    missed_at: float | None = None  # when Jenkins first did not know it any more

    @property
    def key(self) -> str:
        """Its name in the memory."""
        return item_key(self.controller, self.item)

    @property
    def path(self) -> str:
        """What stands for the path of the build that it never became."""
        return f"{self.job}/item-{self.item}"

    def as_run(self) -> Run:
        """Return the build that it never became."""
        return Run(
            path=self.path,
            is_pipeline=False,
            building=False,
            result="",
            started_at=self.at,
            ended_at=None,
            node="",
            item=self.item,
            parameters=self.parameters or (),
            upstream=self.upstream,
        )


def item_key(controller: str, item: int) -> str:
    """Return the name of a queue item in the memory."""
    return f"{controller}#{item}"
