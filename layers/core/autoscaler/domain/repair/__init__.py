"""Repairs: what is not whole, or not where it should be, after two looks. Nothing here reckons with money.

May touch the situation and what is below it.
"""
