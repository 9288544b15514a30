"""The simulated Jenkins: one controller with its queue, nodes and builds.

May touch the time-line, physics and faults, not EC2.
"""
