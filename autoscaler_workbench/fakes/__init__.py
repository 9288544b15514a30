"""Fakes: a simulated Jenkins and EC2, and their APIs over HTTP and in memory.

May touch nothing else in the workbench.
"""
