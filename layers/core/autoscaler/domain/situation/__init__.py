"""The situation: one snapshot joined and resolved, as every rule looks at it; and how a rule writes its steps.

May touch facts and forecasts.
"""
