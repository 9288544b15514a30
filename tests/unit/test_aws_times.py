"""Times in AWS' answers: the standard library reads EC2's, and botocore all others."""

from datetime import UTC, datetime

import pytest
from botocore.utils import parse_timestamp

from autoscaler.adapters.aws import read_time, session_with_quick_times


@pytest.mark.parametrize(
    "written",
    ["2026-11-24T02:00:00.000Z", "2026-11-24T02:00:00Z", "2026-11-24T02:00:00+01:00", "1700000000", 1_700_000_000, 1.5, "20261124"],
)
def test_a_time_is_what_botocore_takes_it_for(written):
    assert read_time(written) == parse_timestamp(written)


def test_what_is_no_time_is_botocores_error():
    with pytest.raises(ValueError, match="Invalid timestamp"):
        read_time("2026-13-99T99:00:00Z")


def test_clients_of_the_session_read_times_so():
    parser = session_with_quick_times().get_component("response_parser_factory").create_parser("ec2")
    shape = {"metadata": {"protocol": "ec2"}}
    assert parser._timestamp_parser("2026-11-24T02:00:00.000Z") == datetime(2026, 11, 24, 2, tzinfo=UTC), shape
