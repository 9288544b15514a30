"""When an agent is launched for what is to come: a minute before its boot must begin, however often the schedule looks."""

import pytest

from autoscaler.domain.forecast.job_patterns import AgentCosts, ArrivalForecast, is_worth_keeping, is_worth_launching


def costs(look_seconds):
    return AgentCosts(
        executors=1, boot_seconds=180.0, vain_seconds=300.0, usd_per_hour=1.0, wait_usd_per_hour=20.0, look_seconds=look_seconds
    )


def comes_in(seconds):
    return ArrivalForecast(soon=seconds, late=seconds, ends=seconds + 60.0, share=0.9)


@pytest.mark.parametrize("look_seconds", [5.0, 60.0])
def test_boots_are_uneven_so_that_one_begins_a_minute_before_it_must(look_seconds):
    assert is_worth_keeping(comes_in(239.0), costs(look_seconds), 1)
    assert is_worth_launching(comes_in(239.0), costs(look_seconds), 1)
    assert not is_worth_keeping(comes_in(241.0), costs(look_seconds), 1)
