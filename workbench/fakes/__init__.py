"""Fakes: a simulated Jenkins and EC2 (`world`), their APIs over HTTP (`http_fakes`) and in memory, and the state in memory.

May touch nothing else in the workbench.
"""
