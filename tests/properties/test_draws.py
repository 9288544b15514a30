"""The fleets that are drawn for the promises are worth judging: everything happens in some of them."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from support.fleets import looks

# In how many of a hundred draws each happens at the least: properties over fleets in which nothing happens say nothing.
LEAST = {
    0.2: "Stop kept-stopped, Start nobody-can-serve",
    0.5: "Held pinned, Held busy-before-restart, FinishStop has-stopped, Start started-by-hand",
    1: "Adopt, Forget, Terminate condemned, Uncordon pinned, Uncordon demand-is-back, Held incomplete-snapshot, Held frozen",
    2: "Launch fills-warm-pool, Launch max-wait, Uncordon busy-before-restart, DeleteNode, Held demand-is-back, Held max-launches-per-hour",
    3: "Cordon surplus, Terminate drained, Launch nobody-can-serve, Held second-look, Held still-busy, Held restart-grace, Held held",
    5: "Held max-agents, Held max-usd-per-hour",
    6: "Cordon, Terminate, Uncordon",
    10: "Launch",
}
# Seeds with fifty draws each. With few draws, chance alone could miss what is rare.
SEEDS = min(60, settings().max_examples // 2)
LEAST_JUDGED = 0.0 if SEEDS == 60 else 5.0


def test_in_what_is_drawn_everything_happens_often_enough_to_be_judged():
    counts, draws = Counter(), 0

    def count(look):
        nonlocal draws
        draws += 1
        said = [(type(one).__name__, one.reason) for plan in look.plans for one in (*plan.steps, *plan.held)]
        counts.update({kind for kind, _ in said} | {f"{kind} {reason}" for kind, reason in said})

    drawn = settings(max_examples=50, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    for number in range(SEEDS):  # draws of one seed are much alike
        drawn(seed(number)(given(looks())(count)))()
    wanted = {what: least for least, kinds in LEAST.items() if least >= LEAST_JUDGED for what in kinds.split(", ")}
    assert {what: counts[what] for what, least in wanted.items() if counts[what] < least / 100 * draws} == {}
