"""Deadlines of what is no agent, or not yet: launches, instances and nodes without a record, pauses and orders."""

from autoscaler.domain.situation.deadlines import Row

LEFT_THE_FILE, FOREIGN = "left-the-file", "foreign"

OTHER_ROWS = (
    Row(
        name="launch-asked",
        recognised_by="a launch that was written down and not answered",
        ended_by="its instances are listed",
        deadline="10 min",
        then="asked again under the same token until then; afterwards given up once two looks show none of its instances",
        told="no; jobs that wait for it by their own message",
        of_agents=False,
    ),
    Row(
        name="stray",
        recognised_by="an instance of ours without a record",
        ended_by="it gets a record",
        deadline="two looks",
        then="it gets a record, a row above, and `boot_timeout_seconds` from then on",
        told="no",
        of_agents=False,
    ),
    Row(
        name=FOREIGN,
        recognised_by="an instance with our tags that CreateFleet did not launch: it lacks `aws:ec2:fleet-id`, which EC2 alone writes",
        ended_by="a person takes the tags off, or ends the instance",
        deadline="none",
        then="nothing is done to it: it is no agent, and is never adopted, stopped or terminated",
        told="at once, then daily",
        of_agents=False,
    ),
    Row(
        name="orphan",
        recognised_by="a node of ours without a record, whose instance is gone",
        ended_by="its node is gone",
        deadline="two looks; 5 min if it looks busy, or something waits for it",
        then="EC2 and Jenkins are asked once more, and the node is deleted",
        told="`steps-failing`, if Jenkins refuses",
        of_agents=False,
    ),
    Row(
        name=LEFT_THE_FILE,
        recognised_by="a record whose controller is not in the fleet file any more",
        ended_by="a person puts the controller back, or ends the instance (`autoscaler end`)",
        deadline="none",
        then="its builds go on; it stays, and is paid",
        told="at once, then daily",
        of_agents=False,
    ),
    Row(
        name="refused-job",
        recognised_by="a job that free executors did not take for three minutes",
        ended_by="it begins",
        deadline="5, 10, 20, then each 30 min",
        then="one more agent is tried for its label",
        told="after `max_wait_seconds` (`free executors do not take jobs for LABEL`)",
        of_agents=False,
    ),
    Row(
        name="waiting-job",
        recognised_by="a job that waits for longer than `max_wait_seconds`",
        ended_by="it begins, or leaves the queue",
        deadline="none",
        then="what keeps it goes on being tried",
        told="once for each cause",
        of_agents=False,
    ),
    Row(
        name="pause",
        recognised_by="failed boots, or an answer of EC2 that refuses launches",
        ended_by="an agent connects, or EC2 launches one",
        deadline="the back-off of that failure, which grows",
        then="one agent is tried",
        told="while it lasts",
        of_agents=False,
    ),
    Row(
        name="order",
        recognised_by="an order of a person with an end: a hold, numbers of a pool or team, a reservation",
        ended_by="its end, or a person",
        deadline="its end",
        then="the fleet file holds again; a held label is given back",
        told="jobs that wait for it after `max_wait_seconds`; an agent without the label an hour after the end",
        of_agents=False,
    ),
)
