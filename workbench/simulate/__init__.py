"""Simulations: one trace played in one world by the production passes, recorded and measured.

May touch the fakes.
"""
