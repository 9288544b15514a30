"""The situation: one snapshot, joined and resolved for every rule; and how a rule writes its steps.

May touch facts and forecasts.
"""
