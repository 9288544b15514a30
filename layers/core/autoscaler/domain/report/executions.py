"""Whether Lambda's concurrent executions are enough, and how many of them the functions that others may call can take."""

from dataclasses import dataclass

# Three scheduled functions, one that a person waits for, and agents that register a few at a time.
_WANTED = 50
# What Lambda keeps for functions that reserve nothing: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
_KEPT_UNRESERVED = 100
# Four hundred agents that boot at once are registered by twenty executions without a wait (make bench ONLY=burst); by five, a hundred are.
_FOR_EACH, _LEAST = 20, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """Executions at once in the account's region; ``unreserved``: those that no function reserves.

    ``public``: how many functions others may call. ``for_each``: what is reserved for each of them, and no more of which it gets; 0
    without a limit, None where nobody says.
    """

    limit: int
    unreserved: int
    public: int
    for_each: int | None

    @property
    def enough(self) -> bool:
        """Tell whether they are enough for all functions of a fleet."""
        return self.limit >= _WANTED

    @property
    def advice_on_callers(self) -> str:
        """Say how to keep callers from taking all executions; empty if they cannot."""
        if self.for_each != 0:
            return ""
        callers = "anybody may call the webhook, and builds register_agent" if self.public > 1 else "builds may call register_agent"
        risk = f"{callers}, and {self.unreserved} calls at once leave none for scale_up"
        reservable = self.unreserved - _KEPT_UNRESERVED
        if reservable >= self.public * _LEAST:
            return f"{risk}: deploy with PublicConcurrency={min(_FOR_EACH, reservable // self.public)}"
        more = self.limit + self.public * _FOR_EACH - reservable
        return f"{risk}; Lambda keeps {_KEPT_UNRESERVED} unreserved: ask for {more}, then deploy with PublicConcurrency={_FOR_EACH}"
