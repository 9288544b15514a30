"""Repairs: nodes, labels, boots and builds that are not as they should be, and what has no record. Nothing here reckons with money.

May touch the situation and what is below it.
"""
