"""A fleet file in which every key stands at least once."""

TEXT = """\
fleet: every-key
limits: {max_agents: 100, max_launches_per_hour: 50, max_usd_per_hour: 200, max_usd_per_month: 90000, at_month_limit: launch-nothing}
controllers:
  main: {url: "https://jenkins.example.org/", secret: jenkins/main, nodes: dynamic, resume_timeout_seconds: 900}
  other: {url: "https://other.example.org/", host_role_id: AROAEXAMPLEID00000009}
kinds:
  gpu: {labels: [gpu]}
  gpu-p3: {of: [gpu], labels: [p3]}
defaults:
  queue_maturity_seconds: 20
  max_wait_seconds: 900
  wait_usd_per_hour: 12.5
  boot_seconds: 120
  boot_timeout_seconds: 1200
  max_idle_seconds: 3600
  idle_seconds: 600
  drain_settle_seconds: 6
  spot_patience_seconds: 90
  spot_discount: 0.5
  spot_max_usd_per_hour: 3
  volume_gib: 80
  volume_usd_per_gib_month: 0.09
  prices: {multiplier: 0.9, region: us-east-1, system: linux}
  max_agent_hours: 48
  drain_timeout_seconds: 7200
  quarantine: keep
  max_builds: 50
  reuse: always
  warm_pool:
    {min_agents: 1, max_agents: 2, max_age_hours: 24, max_disk_age_hours: 200, max_disk_builds: 50, instance_stores: true}
  rerun: {jobs: [nightly/*], lost: {times: 2, second: on-demand}}
pools:
  cpu:
    queue_maturity_seconds: 20
    max_wait_seconds: 900
    wait_usd_per_hour: 12.5
    boot_seconds: 120
    boot_timeout_seconds: 1200
    max_idle_seconds: 3600
    idle_seconds: 600
    drain_settle_seconds: 6
    spot_patience_seconds: 90
    spot_discount: 0.5
    spot_max_usd_per_hour: 3
    volume_gib: 80
    volume_usd_per_gib_month: 0.09
    prices: {multiplier: 0.9, region: us-east-1, system: linux}
    max_agent_hours: 48
    drain_timeout_seconds: 7200
    quarantine: keep
    max_builds: 50
    reuse: always
    warm_pool:
      {min_agents: 1, max_agents: 2, max_age_hours: 24, max_disk_age_hours: 200, max_disk_builds: 50, instance_stores: true}
    rerun: {jobs: [nightly/*], lost: {times: 2, second: on-demand}}
    labels: [linux, cpu]
    controllers: [main, other]
    share: rotate
    executors: 4
    launch_template: autoscaler-linux-every-key
    launch_template_version: "3"
    image_parameter: /ci/linux-image
    instance_types: [c5.4xlarge, m5.4xlarge]
    allocation: by-price
    subnets: [subnet-0a1b2c3d]
    platform: linux
    market: spot-then-on-demand
    max_agents: 20
    max_launches_per_hour: 20
    max_usd_per_hour: 60
    max_usd_per_month: 9000
    max_hours_per_day: 400
    priority: 2
    min_agents: 1
    warm_executors: 2
    schedules:
      - days: [mon, tue]
        from: "08:00"
        to: "18:00"
        time_zone: Europe/Berlin
        min_agents: 2
        max_agents: 15
        warm_executors: 4
        warm_pool:
          {min_agents: 1, max_agents: 3, max_age_hours: 12, max_disk_age_hours: 20, max_disk_builds: 9, instance_stores: true}
      - {from: "22:00", to: "05:00", time_zone: UTC, warm_pool: off}
    max_job_seconds: 600
    remote_dir: /srv/jenkins
    exclusive: false
  gpu:
    kind: gpu
    executors: 1
    launch_template: gpu
    instance_requirements: [arch=x86_64, gpus>=1]
    max_agents: 5
  p3:
    kind: gpu-p3
    lend: always
    executors: 1
    launch_template: gpu
    instance_types: [p3.2xlarge]
    max_agents: 5
    usd_per_hour: 2.5
    warm_pool: off
    rerun: off
  block:
    executors: 8
    launch_template: gpu
    instance_types: [p5.48xlarge]
    usd_per_hour: 30
    warm_pool: off
    max_agents: 1
    capacity_reservation:
      {id: cr-0123456789abcdef0, kind: block, starts_at: "2026-12-01T11:30:00Z", ends_at: "2026-12-02T11:30:00Z"}
  lab: {executors: 2}
hosts:
  box-1:
    pool: lab
    role_id: AROAEXAMPLEID00000001
    owner: anna
    address: gpu-1.example.org
    arch: x86_64
    vcpu: 32
    memory_gib: 128
    gpus: 2
    gpu: AMD gfx1030
rerun_parameter: RUN_ID
job_parameters: {nightly/*: [ARCH, SUITE]}
weights: {nightly/smoke: 2, "nightly/*": learned}
ignore_labels: [windows, mac-*]
runs: {label_parameter: WHERE, max_open: 5}
teams:
  red: {pools: [cpu, gpu], weight: 2, max_agents: 30, max_launches_per_hour: 30, max_usd_per_hour: 90, max_usd_per_month: 20000}
"""
