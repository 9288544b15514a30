"""Known ways to launch twice, and to spend more than a limit allows."""

from planted.bugs import Bug

MONEY = (
    Bug(
        name="a launch is sent again before EC2 lists what it launched",
        file="control/launches.py",
        was="    elif age < LISTED_AFTER_SECONDS:\n        return\n",
        becomes="",
        found_by=("tests/scenarios/test_lost_launches.py",),
    ),
    Bug(
        name="a launch that was met in part is sent again",
        file="control/launches.py",
        was="if mine and (len(mine) >= intent.count or age >= LISTED_AFTER_SECONDS):",
        becomes="if mine and (len(mine) >= intent.count or age >= RESEND_LAUNCH_SECONDS):",
        found_by=("tests/scenarios/test_lost_launches.py",),
    ),
    Bug(
        name="agents in use go on beyond the month's limit",
        file="domain/decide.py",
        was="decided += month_limit.stop(situation, controller, _cordons(decided)) if situation.stopped else ()",
        becomes="decided += ()",
        found_by=("tests/scenarios/test_month_limit.py",),
    ),
    Bug(
        name="what retires comes back beyond the month's limit",
        file="domain/walks.py",
        was="        and not situation.stopped\n",
        becomes="",
        found_by=("tests/unit/test_month_limit.py",),
    ),
    Bug(
        name="jobs that ask for a label which one node has keep that node beyond the month's limit",
        file="domain/situation.py",
        was="    if _stops(fleet, memory, now):\n",
        becomes="    if False:\n",
        found_by=("tests/scenarios/test_month_limit.py",),
    ),
    Bug(
        name="an agent that a begun pipeline waits for is given up at the month's limit",
        file="domain/demand.py",
        was="return pins & {name for item in begun if item.run for name in (*item.wait.nodes, item.wait.named)}",
        becomes="return pins & {name for item in begun if item.run is None for name in (*item.wait.nodes, item.wait.named)}",
        found_by=("tests/unit/test_month_limit.py",),
    ),
    Bug(
        name="a launch that was not answered is sent again beyond the month's limit",
        file="control/launches.py",
        was="on_hold = spent or standing",
        becomes="on_hold = standing",
        found_by=("tests/scenarios/test_month_limit.py",),
    ),
    Bug(
        name="a record is closed before its launch is noted",
        file="control/apply.py",
        was="        if not self.remembered:\n",
        becomes="        if False:\n",
        found_by=("tests/scenarios/test_launch_rate.py",),
    ),
    Bug(
        name="a launch that is noted and recorded counts twice",
        file="domain/limits.py",
        was="launches = {**memory.gone, **unread, **{record.instance_id: record.launched_at for record in snapshot.records}}",
        becomes="launches = {**memory.gone, **unread, **{f'{record.instance_id} ': record.launched_at for record in snapshot.records}}",
        found_by=("tests/unit/test_room.py",),
    ),
    Bug(
        name="spot is reserved at what it is expected to cost",
        file="domain/model.py",
        was="most = self.usd_per_hour if self.most_usd_per_hour is None else self.most_usd_per_hour",
        becomes="most = self.usd_per_hour",
        found_by=("tests/unit/test_room.py",),
    ),
    Bug(
        name="the most to pay for spot is reserved and not sent",
        file="adapters/ec2.py",
        was="    if offering.spot_max_usd_per_hour is not None:\n",
        becomes="    if False:\n",
        found_by=("tests/contract/test_compute.py",),
    ),
    Bug(
        name="what runs on spot is reserved at what it is expected to cost",
        file="domain/room.py",
        was="self._rate = sum(record.reserved_usd_per_hour for record in records)",
        becomes="self._rate = sum(record.usd_per_hour for record in records)",
        found_by=("tests/unit/test_room.py",),
    ),
    Bug(
        name="an event that is delivered twice runs twice at once",
        file="control/passes.py",
        was='owner = f"{pass_id}/{ports.new_id()}"',
        becomes="owner = pass_id",
        found_by=("tests/scenarios/test_faults.py::test_an_event_that_is_delivered_twice_at_once_launches_once",),
    ),
    Bug(
        name="the SDK sends a launch again by itself",
        file="bootstrap.py",
        was='return boto3.client("ec2", config=_SDK_ONCE)',
        becomes='return boto3.client("ec2", config=_SDK)',
        found_by=("tests/handlers/test_launching_once.py",),
    ),
)
