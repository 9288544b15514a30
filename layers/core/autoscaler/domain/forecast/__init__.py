"""Forecasts: what is learned of jobs, builds and boots, and what it makes one expect. `observe` what happened, `expect` what will.

May touch facts. Knows no queue, no agent and no limit.
"""
