"""Repairs: broken, lost or unrecorded agents, after two looks. Nothing here reckons with money.

May touch the situation and what is below it.
"""
