"""Experiments: one trace, many policies, the same world; compared and tuned.

May touch the simulation and the fakes; reports and the command line show its results.
"""
