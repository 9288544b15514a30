"""A machine that is connected to two controllers, as one that serves both at once is. Where one is live, the other is the stand-in."""

from support.rig import opened, stand_in_jenkins


def test_a_node_that_is_deleted_ends_its_own_connection_and_no_other_one(live):
    with stand_in_jenkins() as other, opened(other):
        name = f"{live.prefix}-both"
        try:
            for controller in (live, other):
                controller.add_node(f"{controller.prefix}-both", f"{controller.prefix}-both")
                controller.start_agent(f"{controller.prefix}-both")
            there = f"{other.prefix}-both"
            job = other.submit("goes-on", there, other.build_seconds).rpartition("/")[2]
            other.until(lambda: not other.node(there).idle, "a build runs on the other side")
            live.controller.delete_node(name)
            live.until(lambda: live.controller.node(name) is None, "its node is gone")
            assert not other.node(there).offline
            other.until(lambda: other.result(job) is not None, "the build ends on the other side")
            assert other.result(job) == "SUCCESS"
        finally:
            live.clean()
