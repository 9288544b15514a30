"""Distributions that forget: a value weighs half as much after thirty more, and after thirty days."""

from math import exp, exp2, floor, log

from autoscaler.domain.facts.job_stats import Spread

# Three per cent from one step to the next: finer than any two builds are alike.
STEP = 0.03
STEPS_KEPT = 48
HALF_LIFE_VALUES, HALF_LIFE_SECONDS = 30.0, 30 * 86_400.0
_LEAST = 1e-3  # of ratios and of seconds


def fading(seconds: float) -> float:
    """Return what is left of a weight after one more value, so many seconds later."""
    return exp2(-1.0 / HALF_LIFE_VALUES - max(0.0, seconds) / HALF_LIFE_SECONDS)


def note_value(spread: Spread, value: float, at: float, steps_kept: int = STEPS_KEPT) -> Spread:
    """Add a value; where there are too many steps the lightest is dropped, which is mostly the oldest."""
    left = fading(at - spread.at if spread.count else 0.0)
    weights = {step: round(weight * left, 4) for step, weight in spread.weights.items()}
    step = floor(log(max(value, _LEAST)) / STEP)
    weights[step] = weights.get(step, 0.0) + 1.0
    if len(weights) > steps_kept:
        del weights[min(weights, key=lambda one: (weights[one], one))]
    return Spread(weights=weights, squares=round(spread.squares * left * left + 1.0, 4), count=spread.count + 1, at=at)


def worth(spread: Spread) -> float:
    """Return how many values of equal weight the weights are worth."""
    return sum(spread.weights.values()) ** 2 / spread.squares if spread.squares > 0.0 else 0.0


def quantile(spread: Spread, share: float) -> float:
    """Return a quantile of at least one value, interpolated inside its step."""
    steps = sorted(spread.weights)
    left = share * sum(spread.weights.values())
    for step in steps:
        weight = spread.weights[step]
        if weight >= left > 0.0 or (weight > 0.0 and left <= 0.0):
            return exp(STEP * (step + max(0.0, left) / weight))
        left -= weight
    return exp(STEP * (steps[-1] + 1))
