"""Each kind of step has one function that carries it out."""

import sys
from typing import get_type_hints

from autoscaler.control.apply import CARRIED_OUT_BY
from autoscaler.domain.facts.plan import Step


def test_each_kind_of_step_has_a_function_of_its_own_that_takes_this_kind():
    module = vars(sys.modules[Step.__module__])
    kinds = [kind for kind in module.values() if isinstance(kind, type) and issubclass(kind, Step)]
    steps = [kind for kind in kinds if not any(kind in other.__bases__ for other in kinds)]
    assert len({step.name for step in steps}) == len(steps) == len({*CARRIED_OUT_BY.values()})
    taken = {step: get_type_hints(function)["step"] for step, function in CARRIED_OUT_BY.items()}
    assert taken == {step: step for step in steps}
