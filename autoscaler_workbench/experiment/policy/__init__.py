"""The base of every rival: its view of the fleet, its settings, and a perfect forecast.

May touch the simulation and the fakes, never a rival.
"""
