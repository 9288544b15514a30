"""Forecasts: learned durations, arrivals and boots, and the demand that they predict. `observe` the past, `expect` the future.

May touch facts. Knows no queue, no agent and no limit.
"""
