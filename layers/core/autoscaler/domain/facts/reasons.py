"""Reasons of steps taken and not taken: the same word in the plan, the log and the metric."""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Reasons of steps, and reasons against them; ``meaning`` is a sentence for people."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> Self:
        """Make a reason of its code and its meaning."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.meaning = meaning
        return reason

    # Why something is done.
    FORESEEN = "foreseen", "Jobs are likely to come, and having an agent ready for them costs less than their waiting would."
    STARVED_QUEUE = "starved-queue", "Jobs wait for executors, and their waiting would cost more than another agent."
    NOBODY_CAN_SERVE = "nobody-can-serve", "A job waits, and no agent that is there or on its way can ever run it."
    REFUSED = (
        "refused",
        "Free executors did not take the job for minutes: another agent is tried, one after another, at growing intervals.",
    )
    REFUSES_ALL = "refuses-all", "The agent stood free beside waiting jobs and took none of them; it is replaced."
    MAX_WAIT = "max-wait", "A job would otherwise wait longer than max_wait_seconds."
    MIN_AGENTS = "min-agents", "The pool has fewer agents than min_agents."
    WARM_EXECUTORS = "warm-executors", "Fewer executors than warm_executors are free or on their way."
    TRIES_AGAIN = "tries-again", "EC2 refused what the pool launches; one agent is launched to find out whether it still does."
    MANUAL = "manual", "A person asked for it."
    PINNED = "pinned", "A queue item waits for this very node, by name; the agent is brought back, or kept."
    DEMAND_IS_BACK = "demand-is-back", "Jobs wait that this cordoned agent can run; it is brought back, or kept, instead of a new one."
    BUSY_BEFORE_RESTART = "busy-before-restart", "Jenkins restarted, and a build that ran on this agent may resume on it."
    MONTH_LIMIT_LIFTED = "month-limit-lifted", "The month's limit no longer holds, so agents that were drained for it are brought back."
    NEW_DAY = "new-day", "A new day began, so agents that were drained for max_hours_per_day are brought back."
    DRAINED_BEFORE_RESTART = (
        "drained-before-restart",
        "The agent was being drained when Jenkins restarted; its build has resumed or ended, the drain goes on.",
    )
    DRAINS_ELSEWHERE = (
        "drains-elsewhere",
        "The machine serves several controllers and is drained for good on another one: it takes no new builds here either.",
    )
    SURPLUS = "surplus", "The agent was not needed for longer than it is worth keeping."
    GIVES_WAY = "gives-way", "A limit keeps jobs waiting elsewhere; this idle agent makes room for them."
    HANDS_OVER = (
        "hands-over",
        "A limit keeps jobs waiting that go before this agent's, by priority, share or turn; it takes no new builds, and makes room.",
    )
    LABELS_TAKEN = (
        "labels-taken",
        "The labels of the node are removed first, so that no build starts on it in the instant of the mark (older Jenkins).",
    )
    FULL = (
        "full",
        "The builds on the node weigh so much that none, or none that waits, fits beside them: it loses its labels until there is room.",
    )
    HAS_ROOM = "has-room", "The builds on the node leave room again, by their weights: it gets its labels back."
    LABELS_TO_GIVE_BACK = "labels-to-give-back", "A job may still start on the node, or the agent is used again: it gets its labels back."
    LABELS_HELD = "labels-held", "A person holds a label of the node: it is taken, so that jobs that ask for it wait."
    LABELS_RELEASED = "labels-released", "Nobody holds the label of the node any more: it gets the label back."
    ROTATES = "rotates", "Jobs wait on another controller of a shared pool, and this agent is idle: it serves that one from now on."
    NOT_WANTED_ELSEWHERE = "not-wanted-elsewhere", "The controller that the agent was to go to does not wait for it any more; it stays."
    LENT = "lent", "Jobs of a more general kind wait, and this idle agent of a rarer kind is lent to them."
    NEEDED_BY_ITS_OWN = "needed-by-its-own", "Jobs that need the agent's rarer kind wait or are foreseen; it is lent no longer."
    LENDS_NO_MORE = "lends-no-more", "The fleet file lends agents of this pool no more, or no more by these labels."
    LOAN_OVER = "loan-over", "The jobs that it was lent to have begun or left, or the loan's time is over."
    DRAINED = "drained", "The agent carries our mark and was seen idle before and after it; it is terminated."
    KEPT_STOPPED = "kept-stopped", "The agent is not needed now. Stopped, it costs its disk only, and is back sooner than a new one."
    HAS_STOPPED = "has-stopped", "EC2 says that the instance has stopped; its node is deleted, and it can be started again."
    STOP_FORCED = "stop-forced", "EC2 has said for 10 minutes that the instance is stopping; it is stopped without asking its system."
    STOP_HANGS = "stop-hangs", "EC2 has said for 20 minutes that the instance is stopping; it is terminated."
    START_FAILED = (
        "start-failed",
        "The instance was to start, and EC2 refused that, shows it stopped again, or its agent did not come in time.",
    )
    START_AGAIN = "start-again", "A start was written down, and EC2 does not show it yet; it is asked for again."
    STARTED_BY_HAND = "started-by-hand", "A person started this stopped agent; it is used like any other."
    MAKES_WAY = "makes-way", "Jobs wait, and a launch for them lacked an address or volumes, such as this stopped agent holds."
    PROVES_STARTS = "proves-starts", "One stopped agent is started to see whether agents of this template version start again."
    FILLS_WARM_POOL = "fills-warm-pool", "The pool has fewer stopped agents than warm_pool.min_agents; one is launched, to be stopped."
    NOT_WORTH_KEEPING = "not-worth-keeping", "The stopped agent was not needed for longer than its disk is worth paying for."
    WARM_POOL_AGE = "warm-pool-age", "The agent has been stopped for longer than warm_pool.max_age_hours."
    DISK_USED_UP = "disk-used-up", "The disk of the agent is too old, or has seen too many builds, to be kept (warm_pool)."
    SHORT_OF_DISK = "short-of-disk", "The agent reports less than a tenth of its disk free: it is terminated, and not stopped."
    INSTANCE_STORE = "instance-store", "The agent's type has instance stores, which are empty after a stop: it is terminated."
    WARM_POOL_OFF = "warm-pool-off", "The pool keeps no stopped agents any more (warm_pool)."
    BEACON_LEFT = "beacon-left", "A beacon has labels that no pool gives any more; it is deleted."
    BEACON = "beacon-missing", "The node that makes Jenkins name the labels of waiting jobs is missing; it is made again."
    INTERRUPTED = "spot-interruption", "EC2 announced that it takes this spot instance back; its node takes no new builds."
    NOT_INTERRUPTED = (
        "not-interrupted",
        "EC2 announced that it takes the instance back, and has not within ten minutes: it is used again.",
    )
    OUTDATED = "outdated", "The agent was launched from an older version of its launch template, or from an older image."
    MAX_AGENT_HOURS = "max-agent-hours", "The agent is older than max_agent_hours."
    MAX_BUILDS = "max-builds", "The agent has had max_builds builds, or one where reuse is never; it takes no more, and is replaced."
    CAPACITY_ENDS = "capacity-ends", "The Capacity Reservation or Block of the agent is about to end; the agent takes no new builds."
    RESERVED = "reserved", "A person reserved the agent: it takes no builds until it is released or its time is over."
    RESERVATION_OVER = "reservation-over", "The reservation of the agent is over; it is terminated, since a person was on it."
    FAILURE_STREAK = "failure-streak", "Builds of different jobs failed on this agent one after the other, as they do not elsewhere."
    MARKED_BY_MONITOR = (
        "marked-by-monitor",
        "A node monitor of Jenkins or of a plugin took the agent offline and has not brought it back; it is replaced, and ends once idle.",
    )
    FAR_OVERDUE = "far-overdue", "A build has run many times longer on this agent than its job ever did."
    BUILD_HAS_ENDED = "build-has-ended", "An executor of the agent shows a build that has ended, and takes no other; the agent is replaced."
    # Repairs.
    BOOT_TIMEOUT = "boot-timeout", "The instance did not register, or its node did not connect, within boot_timeout_seconds."
    DISCONNECTED = "disconnected", "The node has been disconnected for so long that it is not expected back."
    INSTANCE_GONE = "instance-gone", "The instance ended; its node is deleted and its record closed."
    NODE_GONE = "node-gone", "The node was deleted in Jenkins; its instance is terminated."
    INSTANCE_STOPPED = (
        "instance-stopped",
        "The instance was stopped, and not by us; it is terminated where its pool keeps no stopped agents.",
    )
    UNKNOWN_INSTANCE = "unknown-instance", "The instance carries the fleet's tags and has no record; it gets one."
    CONDEMNED = "condemned", "Termination of the agent was decided before; what is left of it is removed."
    SLOT_LEFT_OFFLINE = (
        "slot-left-offline",
        "A static node without an agent carries our mark, or a monitor's; the mark is removed.",
    )
    LOST_BUILD = "lost-build", "The build was lost with its agent; it is started again with the same parameters (rerun)."
    RERUN_FOUND = "rerun-found", "Jenkins did not answer when a lost build was started again; the build that it started was found."
    LOST_TOO_OFTEN = "lost-too-often", "The build was lost as often as rerun allows, and is left to a person."
    HIDDEN_PARAMETERS = "hidden-parameters", "The lost build had a password or a file as a parameter, which Jenkins shows to nobody."
    OTHER_PARAMETERS = "other-parameters", "The job of the lost build does not declare one of its parameters any more."
    PARENT_WAITS = "parent-waits", "Another build waited for the lost one, and would not wait for a new one; that one is to be run again."
    NOT_BUILDABLE = "not-buildable", "The job of the lost build is disabled, or was deleted."
    REPEATED_BY_PERSON = "repeated-by-person", "A person started the lost build again first; nothing is started beside that."
    RERUN_REFUSED = "rerun-refused", "Jenkins did not start the lost build again, and would not if it were asked once more."
    RERUN_UNWANTED = (
        "rerun-unwanted",
        "The fleet file asks for no rerun of it any more; Jenkins did not start it, and it is left to a person.",
    )
    RERUN_IN_DOUBT = "rerun-in-doubt", "It is not certain whether the build was lost, or was started again already; nothing is sent twice."
    # Why something is not done.
    MAY_RESUME = "may-resume", "The agent of a build has gone, and Jenkins has not ended the build: it may resume, or retry elsewhere."
    HELD = "held", "A person paused scaling here (hold), or the AWS budget is spent."
    CI_FIRST = "ci-first", "The agent is one of the pool's min_agents, which are for builds and not to be reserved."
    NO_FREE_DEVICE = "no-free-device", "No machine has a free device for a person, or none says which devices are free."
    FROZEN = "frozen", "A person paused everything here, drains, too (hold --freeze)."
    MAX_AGENTS = "max-agents", "The pool has max_agents agents."
    TEAM_MAX_AGENTS = "team-max-agents", "The pools of the team have its max_agents agents (teams)."
    FLEET_MAX_AGENTS = "fleet-max-agents", "The fleet has limits.max_agents agents."
    LAUNCH_RATE = (
        "max-launches-per-hour",
        "The fleet, the team or the pool launched max_launches_per_hour agents within the last hour; whose limit it was stands beside it.",
    )
    USD_PER_HOUR = (
        "max-usd-per-hour",
        "Another agent would exceed max_usd_per_hour of the fleet, the team or the pool; whose limit it was stands beside it.",
    )
    USD_PER_MONTH = (
        "max-usd-per-month",
        "The month's money (max_usd_per_month) of the fleet, the team or the pool is spent, or another agent would exceed it.",
    )
    HOURS_PER_DAY = (
        "max-hours-per-day",
        "The pool's agents have run max_hours_per_day today (UTC), or another agent would leave less than an hour for each.",
    )
    NOT_ITS_TURN = (
        "not-its-turn",
        "A limit keeps jobs of several teams or priorities waiting, and another one goes first with the room that is left.",
    )
    NO_OFFERING = (
        "no-offering",
        "EC2 had no capacity, or refused, for each of the pool's types and subnets lately; one agent at a time is tried again.",
    )
    NO_FREE_SLOT = "no-free-slot", "All static nodes of the pool are in use (nodes: slots)."
    OF_HOSTS = "of-hosts", "The pool's machines are hosts of your own: none is launched, stopped or ended."
    CAPACITY_CLOSED = "capacity-closed", "The pool's Capacity Reservation or Block has not begun, or ends before builds would."
    POOL_PAUSED = "pool-paused", "EC2 refused a launch of this pool for a reason that trying again at once would not change."
    ACCOUNT_THROTTLED = (
        "account-throttled",
        "EC2 throttles the account, does not answer or has an error of its own, or a quota is used up.",
    )
    BREAKER_OPEN = "breaker-open", "Boots of this pool keep failing, so it is paused for a while."
    ONE_TRIAL = "one-trial", "Boots of this pool kept failing; one agent is tried until one connects."
    CANNOT_CONNECT = (
        "cannot-connect",
        "Jenkins makes no node or lets no new agent connect: a right is missing, or a login page is in the way. A beacon or agent tries.",
    )
    CANARY = "canary", "The launch template has a new version; one agent of it is tried until one connects."
    NOT_LENT = "not-lent", "An idle agent of a rarer kind could run the job, and is not lent."
    WAITS_FOR_NODE = "waits-for-a-node", "One node alone can take the item: it asks for that node, or for a label that no pool gives."
    UNSERVABLE = "unservable", "No pool can serve what the item asks for."
    JOB_TOO_LONG = "job-too-long", "The item's job takes longer than each pool with its labels allows (max_job_seconds)."
    UNCLEAR = "waits-for-something-unknown", "The item waits for something in words that the autoscaler does not know, such as a plugin's."
    LABEL_UNKNOWN = "label-unknown", "Jenkins does not say which label the item waits for."
    WORTH_WAITING = "worth-waiting", "A busy executor will be free so soon that waiting for it costs less than another agent."
    INCOMPLETE = "incomplete-snapshot", "Something of this controller could not be read, so nothing is decided on it now."
    NODE_UNREAD = "node-unread", "Jenkins shows the agent's node in a form that is not understood, so nothing is done to the agent."
    EC2_DISAGREES = (
        "ec2-disagrees",
        "EC2 shows no living instance of many agents that are connected in Jenkins; nothing is removed until they agree.",
    )
    QUEUE_IN_PARTS = (
        "queue-in-parts",
        "The controller's queue is too large for one answer, so it was read in parts; nothing is scaled in on what parts show.",
    )
    QUIETING_DOWN = "quieting-down", "Jenkins prepares to shut down and starts no builds."
    RESTART_GRACE = "restart-grace", "Jenkins restarted a moment ago; nothing is scaled in until it has settled."
    MOST_MARKED = (
        "most-marked",
        "Monitors took most agents of the controller offline within minutes: the agents are not to blame. They stay; one an hour is tried.",
    )
    WINDOW_OPEN = "window-not-full", "Agents seem to be too many, but not yet for long enough."
    SECOND_LOOK = "second-look", "The agent is marked and idle; a second look must confirm it before the agent is terminated."
    NODE_DELETED = (
        "node-deleted",
        "Jenkins has deleted the node, and lists it until it has ended the pipeline on it; a second deletion would leave that for ever.",
    )
    STILL_BUSY = "still-busy", "Builds run on the agent; it is terminated once they are done."
    MARKED_BY_A_PERSON = "marked-by-a-person", "A person took the node offline; it is left alone."
    USED_ELSEWHERE = (
        "used-elsewhere",
        "The machine serves several controllers, and is not drained on all of them: it goes once it is.",
    )
    HOST_STAYS = "host-stays", "The host is drained, and stays as it is until a person brings its node online."
    KEPT = "kept-for-inspection", "The agent is kept for a person to inspect (quarantine: keep)."
    DRAIN_OVERDUE = "drain-overdue", "The agent has been draining for longer than drain_timeout_seconds; its builds are not killed."
    POOL_LEFT = "pool-left", "The pool left the fleet file, or does not serve this controller any more; its agents are drained."
    LEFT_THE_FILE = (
        "left-the-file",
        "The fleet file does not name the host, or the controller of the agent for this pool, any more; it takes no new builds.",
    )
    STUCK = "stuck", "EC2 does not let us terminate the instance; a person must look, for example at termination protection."
    KEEPS_FAILING = "keeps-failing", "This step failed several times in a row; it is tried again less often."
    SWEEP_LIMIT = "sweep-limit", "Repairs would remove too large a share of the pool at once; the rest waits."
    NOT_FOUND = "not-found", "No agent to which the command could apply has the name that was given."
    NOT_OURS = "not-ours", "The agent's controller left the fleet file: nobody sees its builds, so it is kept until a person decides."
    MOST_POOLS_LEFT = (
        "most-pools-left",
        "More than half of the agents lost their pool at once: the fleet file may be wrong, so they are kept for an hour.",
    )
    STILL_SEEN = "still-seen", "The instance's controller is in the fleet file, which sees its builds: drain the agent instead."
    ALREADY_DONE = "already-done", "A request with this id was carried out before."
    FEWER_THAN_ASKED = "fewer-than-asked", "Fewer agents could be launched or drained than were asked for."
