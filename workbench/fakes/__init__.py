"""Fakes: a simulated Jenkins and EC2 (`world`), how they answer over HTTP or in memory (`faces`), and state in memory.

May touch nothing else in the workbench.
"""
