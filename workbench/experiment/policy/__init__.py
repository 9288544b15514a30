"""What every rival stands on: its view of the fleet, its settings, and what it would need to know of the future.

May touch the simulation and the fakes, never a rival.
"""
