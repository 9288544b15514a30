"""Facts of which no moment is known: those that make no difference for a reason, and those of which nobody has found one yet."""

# In one line, why nothing outside may differ.
REASONS: dict[str, str] = {}

# Not tried with success yet, by class. This list may only get shorter: a new field gets a moment or a reason.
PENDING: dict[str, str] = {
    "Fleet": "controller_hosts slot_controllers resume_timeouts machines prices_listed_on",
    "Limits": "at_month_limit",
    "PoolSchedule": "to_minute time_zone warm_executors warm_pool",
    "Host": "owner machine",
    "Machine": "arch vcpu memory_gib gpus gpu",
    "JobWeights": "known",
    "RunPolicy": "label_parameter max_open",
    "Thresholds": (
        "free_executors failure_streak agent_disk_bytes controller_disk_bytes controller_memory_bytes "
        "controller_response_seconds controller_cpu_percent"
    ),
    "StoredState": "devices",
    "Record": "started_for",
    "Reservation": "request",
    "Intent": "pool controller count request keep_until instances empty_look_at version to_stop reservation",
    "Memory": "idle_returns growths draining_since missing unhelped owed canaries kept hosts_off gone_from requests reruns left",
    "ControllerSession": "restarted busy marked suspects",
    "Window": "guessed burst",
    "Burst": "peaks rises",
    "IdleReturns": "times jobs",
    "Growth": "steps",
    "CoolOff": "times why",
    "CapacityDelay": "asked_at",
    "Breaker": "failures opened_at",
    "Stuck": "since_at tried_at",
    "Missing": "since_at asked_at",
    "Failing": "since_at why",
    "MonthParts": "boot_usd stopped_usd",
    "LostBuild": "instance_id others elsewhere",
    "LeftBuild": "controller pool run why at",
    "Learned": "runs stages schedules succeeded_at",
    "RunSeen": "project stage since_at left_at items builds",
    "StageSeen": "followed ended",
    "Arrivals": "count",
    "Expected": "at period_seconds share kind",
    "Streak": "since_at jobs",
    "Overrides": "version",
    "Told": "version month",
    "Devices": "told_at waiting",
    "Device": "id kind user",
    "PassNotes": "version completed",
    "Spread": "weights squares count at",
    "Skill": "weight",
    "MachineSize": "cores",
    "JobTracker": "waiting uses weights version",
    "WaitingItem": "signature asked_at duration start bare_seconds corrected_seconds kinds",
    "RunningBuild": "waited on_time",
    "EndedUse": "job run signature pool machine ended_at",
    "RunOrder": "label_parameter run_parameter resubmit replace",
    "Try": "id took_seconds",
    "Rerun": "controller run began_at state times on_demand created_at item why",
    "Snapshot": "controllers fates intents learned template_versions images unknown_alone spot_prices ended_runs lost queued devices",
    "ControllerView": "name unread",
    "QueueItem": "run labelless",
    "Node": "labels description lost_at",
    "Build": "run signature",
    "Instance": "launch state_reason subnet",
    "Run": "is_pipeline item",
    "Job": "path entries is_whole",
    "Entry": "item run at is_ours parameters",
    "Waiting": "job at parameters upstream",
    "Identity": "instance_id pool controller",
    "Health": "response_seconds",
    "RunEnd": "seconds",
    "Telemetry": "seconds samples memory_least memory_mean swap_used cpu_most load received sent root_total work_total",
    "GpuUse": "id use most",
    "BuildUse": "gone",
}


def pending() -> set[str]:
    return {f"{name}.{field}" for name, fields in PENDING.items() for field in fields.split()}
