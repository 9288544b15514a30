"""Experiments: whole runs compared with one another, ours and the rivals', and what follows from them.

May touch simulations and fakes.
"""
