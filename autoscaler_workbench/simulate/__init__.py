"""Simulations: one trace in one world, played by the production passes and measured.

May touch the fakes.
"""
