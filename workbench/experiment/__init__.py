"""Experiments: one trace played by many policies in the same world, compared, tuned, and read from a real Jenkins' history.

May touch the simulation and the fakes; reports and the command line show its results.
"""
