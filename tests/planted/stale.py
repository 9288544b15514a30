"""Ways in which a memo could tell what is not true any more."""

from planted.bug import Bug

_FOUND_BY = ("tests/unit/test_memo.py", "tests/properties/test_memo.py")

STALE = (
    Bug(
        name="a value is taken for true though its time has passed",
        function="Memo._still_true",
        was="kept.at <= now < kept.not_before and ",
        becomes="kept.at <= now and ",
        found_by=_FOUND_BY,
    ),
    Bug(
        name="a value is taken for true at a time before it was worked out",
        function="Memo._still_true",
        was="kept.at <= now < kept.not_before and ",
        becomes="now < kept.not_before and ",
        found_by=_FOUND_BY,
    ),
    Bug(
        name="a value is taken for true though its facts are others",
        function="Memo._still_true",
        was=" and kept.facts == facts",
        becomes="",
        found_by=_FOUND_BY,
    ),
    Bug(
        name="a plan is made again though something else is seen at that time",
        function="scale_up",
        was='memo.value("scale_up", (snapshot, fleet), ',
        becomes='memo.value("scale_up", (snapshot.taken_at, fleet), ',
        found_by=("tests/properties/test_memo.py::test_every_plan_is_the_same_with_and_without_a_memo_of_what_was_before",),
    ),
    Bug(
        name="an agent costs what it did though boots, offerings and looks are others",
        function="_pools",
        was='("costs", facts, look.now, lambda _, of: (agent_costs(*of), FOR_EVER))',
        becomes='("costs", dict.fromkeys(facts), look.now, lambda name, _: (agent_costs(*facts[name]), FOR_EVER))',
        found_by=("tests/properties/test_memo.py::test_every_plan_is_the_same_with_and_without_a_memo_of_what_was_before",),
    ),
    Bug(
        name="an agent costs what it did though its pool is another in the fleet file",
        function="_pools",
        was='("costs", facts, look.now, lambda _, of: (agent_costs(*of), FOR_EVER))',
        becomes='("costs", {k: f[1:] for k, f in facts.items()}, look.now, lambda k, of: (agent_costs(pools[k], *of), FOR_EVER))',
        found_by=("tests/properties/test_memo.py::test_every_plan_is_the_same_with_and_without_a_memo_of_what_was_before",),
    ),
    Bug(
        name="forecasts are kept though other jobs came",
        function="Situation._forecast",
        was="facts = now, pools, learned.arrivals, learned.followers, learned.runs, learned.stages",
        becomes="facts = now, pools, learned.followers, learned.runs, learned.stages",
        found_by=("tests/unit/test_job_patterns.py::test_a_memo_does_not_hold_what_was_foreseen_before_other_jobs_came",),
    ),
)
