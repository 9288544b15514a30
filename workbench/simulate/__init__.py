"""Simulations: one trace played in one world by the real passes, and what came of it.

May touch the fakes.
"""
