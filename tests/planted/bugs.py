"""Known ways to kill a build, to leak a machine or to exceed a limit, each as the smallest change that brings it back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """``was`` stands once in ``file`` (below the package) and becomes ``becomes``; ``found_by``: tests of the suite that must notice."""

    name: str
    file: str
    was: str
    becomes: str
    found_by: tuple[str, ...]


BUGS = (
    Bug(
        name="a purge takes what waits for a node by its name",
        file="domain/decide.py",
        was="if label not in nodes and asks_for(label, order.label):",
        becomes="if asks_for(label, order.label):",
        found_by=("tests/unit/test_standing.py",),
    ),
    Bug(
        name="a freeze lets agents be given up",
        file="domain/decide.py",
        was="        if hold is None or not hold.freeze:\n",
        becomes='        if hold is None or not hold.freeze or hasattr(step, "instance_id"):\n',
        found_by=("tests/unit/test_standing.py",),
    ),
    Bug(
        name="what retires comes back in a pool on hold",
        file="domain/walks.py",
        was="if agent.phase is Phase.RETIRING and not pool.on_hold and",
        becomes="if agent.phase is Phase.RETIRING and",
        found_by=("tests/unit/test_standing.py",),
    ),
    Bug(
        name="a queue item that waits for a node by name does not keep it",
        file="domain/situation.py",
        was="return demand is None or name in demand.pins or bool(life and name in life.suspects)",
        becomes="return demand is None or bool(life and name in life.suspects)",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="an agent that was busy before a restart is believed to be idle",
        file="domain/situation.py",
        was="return demand is None or name in demand.pins or bool(life and name in life.suspects)",
        becomes="return demand is None or name in demand.pins",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="terminated as soon as it is cordoned, without a second look",
        file="domain/looks.py",
        was="    if look.condition != Condition.DRAINED:\n        return False\n",
        becomes="    if look.condition == Condition.DRAINED:\n        return True\n",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="repairs act on one look",
        file="domain/looks.py",
        was="return look.invocation != invocation and now - look.first_at >= SECOND_LOOK_SECONDS",
        becomes="return True",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="a build that slipped in before the last read does not count",
        file="control/nodes.py",
        was='    if not node.idle or node.builds:\n        return "a build slipped in"\n',
        becomes="",
        found_by=("tests/scenarios/test_last_read.py",),
    ),
    Bug(
        name="the node is not read again before its machine is terminated",
        file="control/apply.py",
        was="            if keep:\n",
        becomes="            if False:\n",
        found_by=("tests/scenarios/test_condemned.py",),
    ),
    Bug(
        name="cordon toggles instead of setting",
        file="control/nodes.py",
        was="controller.set_offline(step.node, step.mark.text)",
        becomes="controller.toggle_offline(step.node, step.mark.text)",
        found_by=("tests/handlers/test_instance_events.py::test_our_own_retire_mark_gives_way",),
    ),
    Bug(
        name="a person's mark is overwritten",
        file="control/nodes.py",
        was="    if before.temporarily_offline and not (step.replaces and carries(before, step.replaces)):\n",
        becomes="    if False:\n",
        found_by=("tests/scenarios/test_marks.py",),
    ),
    Bug(
        name="uncordon toggles without reading whose mark it is",
        file="control/nodes.py",
        was="    if before is None or not carries(before, step.mark):\n",
        becomes="    if before is None:\n",
        found_by=("tests/scenarios/test_marks.py",),
    ),
    Bug(
        name="demand brings back what EC2 is about to take away",
        file="domain/agents.py",
        was="return Phase.RETIRING if mark.kind is MarkClass.RETIRE else Phase.DRAINING",
        becomes="return Phase.RETIRING",
        found_by=("tests/handlers/test_instance_events.py::test_demand_never_brings_it_back_and_another_is_launched",),
    ),
    Bug(
        name="an instance that EC2 does not know is taken for gone at once",
        file="domain/agents.py",
        was="return InstanceState.NOT_FOUND if is_forgotten and left else None",
        becomes="return InstanceState.NOT_FOUND",
        found_by=("tests/scenarios/test_gone.py",),
    ),
    Bug(
        name="EC2 that shows many connected agents no more is believed",
        file="domain/situation.py",
        was="        if self.disagreement:\n",
        becomes="        if False:\n",
        found_by=("tests/scenarios/test_gone.py",),
    ),
    Bug(
        name="a node is deleted although somebody is connected to it",
        file="control/nodes.py",
        was='    if not node.offline:\n        return "its node is connected"\n',
        becomes="",
        found_by=("tests/scenarios/test_last_read.py",),
    ),
    Bug(
        name="a node of another deployment of the same name is taken for ours",
        file="domain/model.py",
        was='(found["node"], found["fleet"], found["home"] or "") != (node, fleet.name, fleet.home)',
        becomes='(found["node"], found["fleet"]) != (node, fleet.name)',
        found_by=("tests/unit/test_orphans.py",),
    ),
    Bug(
        name="a person's copy of our node is deleted as ours",
        file="domain/model.py",
        was='(found["node"], found["fleet"], found["home"] or "") != (node, fleet.name, fleet.home)',
        becomes='(found["fleet"], found["home"] or "") != (fleet.name, fleet.home)',
        found_by=("tests/unit/test_orphans.py",),
    ),
    Bug(
        name="what a person marked is deleted as an orphan",
        file="domain/strangers.py",
        was=" or _marked_by_a_person(situation, node):",
        becomes=":",
        found_by=("tests/unit/test_orphans.py",),
    ),
    Bug(
        name="an instance that asks while EC2 does not show it is told to power off",
        file="domain/registration.py",
        was='return Refused(status=Status.TOO_EARLY, reason="EC2 does not show this instance")',
        becomes='return Refused(status=Status.GONE, reason="EC2 does not show this instance")',
        found_by=("tests/scenarios/test_gone.py",),
    ),
    Bug(
        name="an instance that a list does not show is taken for gone",
        file="domain/agents.py",
        was="return self.instance in _GONE",
        becomes="return self.instance is None or self.instance in _GONE",
        found_by=("tests/unit/test_orphans.py",),
    ),
    Bug(
        name="an agent that is disconnected is taken for idle and goes at once",
        file="domain/giveup.py",
        was="case Condition.LOST if fact and now - fact.first_at >= DISCONNECT_GRACE_SECONDS and not situation.protected(agent):",
        becomes="case Condition.LOST if fact:",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="what a controller shows right after its restart is believed",
        file="domain/lives.py",
        was="return life is None or now - life.since_at < RESTART_GRACE_SECONDS",
        becomes="return False",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="an agent that looks idle after a restart is believed before its builds have resumed",
        file="domain/lives.py",
        was="        elif run not in ended:\n            missing.append(run)\n",
        becomes="        elif run not in ended and node.builds:\n            missing.append(run)\n",
        found_by=("tests/scenarios/test_slow_resumes.py",),
    ),
    Bug(
        name="a build that began after the last look before a restart is forgotten",
        file="domain/lives.py",
        was="return runs if node in life.marked or _UNKNOWN in runs else (*runs, _UNKNOWN)",
        becomes="return runs",
        found_by=("tests/scenarios/test_slow_resumes.py",),
    ),
    Bug(
        name="a controller that could not be read completely is believed",
        file="domain/situation.py",
        was="if view is None or not view.complete:\n            return Reason.INCOMPLETE",
        becomes="if view is None:\n            return Reason.INCOMPLETE",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="an instance registers after it was given up",
        file="domain/registration.py",
        was="record.state in {RecordState.CONDEMNED, RecordState.GONE}",
        becomes="record.state is RecordState.GONE",
        found_by=("tests/unit/test_registration.py",),
    ),
    Bug(
        name="a launch whose answer was lost is forgotten",
        file="control/launches.py",
        was="    except UnansweredError as error:\n        return Result(",
        becomes="    except UnansweredError as error:\n        _advance(ports, sent, replace(sent, state=IntentState.SETTLED))\n"
        "        return Result(",
        found_by=("tests/scenarios/test_faults.py::test_a_lost_launch_is_found_by_its_tag_and_not_repeated",),
    ),
    Bug(
        name="a launch is sent again with another token",
        file="control/launches.py",
        was="settle(ports, pool, sent, ports.compute.launch(sent.request))",
        becomes="settle(ports, pool, sent, ports.compute.launch(sent.request.replace('Token\": \"', 'Token\": \"x')))",
        found_by=("tests/scenarios/test_faults.py::test_a_lost_launch_that_no_list_shows_yet_is_sent_again_with_the_same_token",),
    ),
    Bug(
        name="a launch that never came to be keeps its reservation for ever",
        file="control/launches.py",
        was="    elif now - intent.empty_look_at >= SECOND_LOOK_SECONDS:\n",
        becomes="    elif now < intent.created_at:\n",
        found_by=("tests/scenarios/test_faults.py::test_a_launch_that_stays_without_answer_is_given_up_and_its_room_comes_back",),
    ),
    Bug(
        name="launches under way do not count against the limits",
        file="domain/room.py",
        was="open_intents = [intent for intent in snapshot.intents if intent.open]",
        becomes="open_intents = [intent for intent in snapshot.intents if not intent]",
        found_by=("tests/unit/test_scale_up.py", "tests/properties/test_promises.py"),
    ),
    Bug(
        name="a pass that lost its lease launches all the same",
        file="adapters/dynamodb.py",
        was='self._write(written, self._check("lease", held))',
        becomes="self._write(written)",
        found_by=("tests/contract/test_state.py",),
    ),
    Bug(
        name="two passes act at once",
        file="control/passes.py",
        was="while not ports.lease.acquire(owner, now=ports.clock(), until=ports.clock() + LEASE_SECONDS):",
        becomes="while ports.lease.acquire(owner, now=ports.clock(), until=ports.clock() + LEASE_SECONDS) is None:",
        found_by=("tests/scenarios/test_faults.py::test_two_passes_never_act_at_once",),
    ),
    Bug(
        name="two instances get the same slot",
        file="adapters/dynamodb.py",
        was='return [self._put(_node_item(record), {"instance_id": {"S": record.instance_id}}, _free_or_of(record))]',
        becomes="return []",
        found_by=("tests/contract/test_state.py",),
    ),
    Bug(
        name="a slot comes back online while its machine may still run",
        file="domain/slots.py",
        was="elif agent.instance is InstanceState.TERMINATED and situation.now - ended_since >= SLOT_REST_SECONDS:",
        becomes="elif situation.now >= ended_since:",
        found_by=("tests/scenarios/test_slots.py::test_a_slot_stays_offline_until_its_machine_has_surely_ended",),
    ),
    Bug(
        name="a sweep takes as many as it finds",
        file="domain/giveup.py",
        was="if swept[step.pool] > max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * sizes.get(step.pool, 0))):",
        becomes="if swept[step.pool] < 0:",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="a broken image is launched for ever",
        file="domain/breakers.py",
        was="until_at=now + pause if count >= BREAKER_FAILURES else 0.0,",
        becomes="until_at=0.0,",
        found_by=("tests/scenarios/test_boots.py::test_a_broken_image_does_not_launch_for_ever",),
    ),
    Bug(
        name="a fallback to on-demand asks for spot again",
        file="adapters/ec2.py",
        was="spot = launch.market is Market.SPOT",
        becomes="spot = any(offering.market is Market.SPOT for offering in pool.offerings)",
        found_by=("tests/scenarios/test_spot.py::test_a_fallback_really_asks_for_on_demand",),
    ),
    Bug(
        name="draining agents count as supply",
        file="domain/supply.py",
        was="        case Phase.READY:\n            yield from ready_slots",
        becomes="        case Phase.READY | Phase.DRAINING | Phase.RETIRING:\n            yield from ready_slots",
        found_by=("tests/unit/test_scale_up.py",),
    ),
    Bug(
        name="an agent past its boot deadline still counts as booting",
        file="domain/agents.py",
        was="return Phase.REQUESTED if in_time else Phase.OVERDUE",
        becomes="return Phase.REQUESTED",
        found_by=("tests/unit/test_scale_down.py",),
    ),
    Bug(
        name="an announcement that came to nothing is not tried again",
        file="entry/announced.py",
        was="        _fail_if_undone(reports)\n",
        becomes="",
        found_by=(
            "tests/handlers/test_instance_events.py::test_an_announcement_that_could_not_be_acted_on_fails_so_that_lambda_tries_again",
        ),
    ),
)
