"""The numbers nobody has needed otherwise yet, each with its reason."""

# After a controller restart every agent looks offline and idle for some seconds, and resumed builds are invisible (recorded: f21).
RESTART_GRACE_SECONDS = 120.0
# A pipeline that began after the last look before a restart is known to nobody here until it resumes: twenty minutes was the slowest seen.
UNSEEN_RESUME_SECONDS = 1800.0
# Each costs a small request; a controller that restarted with more busy nodes than this is asked for the others in the next looks.
RUNS_ASKED_A_LOOK = 30
# A pipeline resumes minutes after a restart, and waits for its node by name then; what begins to wait later is no such pipeline.
RESUMED_WITHIN_SECONDS = 3600.0
# A WebSocket agent is back within seconds of a lost connection; a rebooting one within a few minutes.
DISCONNECT_GRACE_SECONDS = 300.0
# Repairs act on what two invocations saw, this far apart: DescribeInstances lags by up to 30 s.
SECOND_LOOK_SECONDS = 60.0
# A look is worth nothing when passes were missing since: what happened in between is unknown.
LOOK_GAP_SECONDS = 180.0
# EC2 tells of an instance for an hour after its end, so that what nobody saw for twice as long is no lag and no outage of a list; and it
# is asked for alone, twice, so far apart that two answers are not one mistake. Each question is a call of its own.
FORGOTTEN_AFTER_SECONDS = 7200.0
FORGOTTEN_ASK_AGAIN_SECONDS = 600.0
FORGOTTEN_ASKED_A_LOOK = 10
# A pipeline stays on the executor of a machine that died, and Jenkins ends it only when its node is deleted: after a day on which EC2
# did not know the machine and nobody connected, nobody will.
FORGOTTEN_BUSY_AFTER_SECONDS = 86_400.0
# An instance that is told to ask again does so after this long.
ASK_AGAIN_SECONDS = 15
# A launch that was not answered took effect within the client's time-out of 10 s, if it did, and is listed 30 s later at most. Until then
# it is not sent again: should EC2 have forgotten the token, it would be launched twice.
LISTED_AFTER_SECONDS = 45.0
# An agent asks when it boots and when its connection has ended: agent/ asks no more than this. A build with the role's credentials may.
ASKS_AN_HOUR = 60
ASKS_WITHIN_SECONDS = 3600.0
ASK_LESS_SECONDS = 120
# EC2 honours a client token for longer than this; after it a launch is never sent again.
RESEND_LAUNCH_SECONDS = 600.0
# A connection that nobody closed is noticed by Jenkins' own pings within this; until then a slot brought back online may look
# connected, and be given a build that no machine runs.
SLOT_REST_SECONDS = 300.0
# A sweep over a larger share of a pool is more likely our own mistake than the world's.
SWEEP_SHARE = 0.3
SWEEP_AT_LEAST = 2
# Capacity comes back in minutes; who has something else to ask for does not wait for it. Where nothing else is left, jobs do: asking
# once a minute is far below what the CreateFleet bucket refills, and asking more often brings nothing (docs/comparison.md).
COOL_OFF_SECONDS = (180.0, 360.0, 600.0)
LAST_RESORT_SECONDS = 60.0
UNSUPPORTED_COOL_OFF_SECONDS = 86_400.0
# A bad template or an exhausted vCPU quota needs a person; try again at this pace meanwhile.
POOL_PAUSE_SECONDS = 300.0
ACCOUNT_THROTTLE_SECONDS = 60.0
# One boot may fail by itself; three in a row are the image's, the network's or the template's doing. Launching on costs money for
# nothing, so a pool is paused, twice as long each time, and tried with one agent at a time until one connects.
BREAKER_FAILURES = 3
BREAKER_SECONDS, BREAKER_AT_MOST_SECONDS = 300.0, 3600.0
FAILED_BOOTS_KEPT = 20
# EC2 does not let us terminate it (protected): a person must act, and finds out by the alarm. Asking each minute changes nothing.
STUCK_TRY_AGAIN_SECONDS = 3600.0
# Jenkins may refuse a step once by chance; so often in a row it lacks a right, or something is in its way. It is then tried at this pace.
FAILING_TRIES = 3
FAILING_TRY_AGAIN_SECONDS = 300.0
# An item that waits for something unknown beside a free executor is not helped by another one; after so long one is tried again.
UNHELPED_SECONDS = 6 * 3600.0
# A failing step that nobody has wanted for so long is over.
FAILING_FORGOTTEN_SECONDS = 900.0
# Agents taken because a machine, a template or an age is not what it should be, at most this share of a pool an hour.
TAKEN_SHARE = 0.2
TAKEN_AT_LEAST = 1
# How builds ended is asked for no longer than this a look: a slow controller must not keep it from saving what it saw, or the next look
# would ask for the same again.
RESULTS_SECONDS = 10.0
# Failures in a row that make a machine suspect, where others of its pool succeed: of builds that fail one time in four by
# themselves, one in a thousand such rows.
QUARANTINE_FAILURES = 5
# A build that has run for so many times the longest its job took is overdue, and for so many it is not slow, it hangs; of jobs seen so
# often, and not within the hour.
OVERDUE_FACTOR = 3.0
OVERDUE_SAMPLES = 5
FAR_OVERDUE_FACTOR = 10.0
FAR_OVERDUE_AT_LEAST_SECONDS = 3600.0
# p50 of the boots seen is used once there are this many.
BOOTS_TO_TRUST = 10
SAMPLES_KEPT = 50
# Beyond p80 a build is overdue; beyond three times p80 it is taken to hold its executor for good.
NEVER_FREE_FACTOR = 3.0
# Before a pool has seen one build end: ten minutes, the middle of the CI jobs we have traces of.
ASSUMED_DURATION_SECONDS = 600.0
# EC2 bills a Linux instance by the second, for a minute at least.
MINIMUM_BILLED_SECONDS = 60.0
# With less time left in the invocation than this, no step is begun.
STEP_RESERVE_SECONDS = 10.0
# A step in Jenkins is up to three small calls; one that takes longer than this leaves its controller to the next pass.
SLOW_STEP_SECONDS = 8.0
# The schedule's interval.
MINUTE_SECONDS = 60.0
# Looking several times a minute, no look is begun with less time left than this: it could not act any more.
LAST_LOOK_SECONDS = 12.0
# Lease > function time-out (55 s; 68 s where it looks several times a minute), so that a holder that is cut off cannot be overlapped by
# its own late call.
LEASE_SECONDS = 70.0
LEASE_WAIT_SECONDS = 25.0
LEASE_WAIT_OF_A_PERSON_SECONDS = 45.0
# A schedule tick older than this tells of a world that is gone; the next one is on its way.
STALE_TICK_SECONDS = 90.0
# What is to come is launched for this much before its boot must begin: another look later it would come too late.
PASS_SECONDS = 60.0
# Within the month's limit an agent is reserved for this long: a build that has begun is never cut short to save money.
MONTH_RESERVE_SECONDS = 3600.0
# Spot prices change gradually, a few times a day.
SPOT_PRICES_SECONDS = 600.0
REQUESTS_REMEMBERED_SECONDS = 86_400.0
