"""Reports: what the decision looks like from outside, for people, metrics and agents that register.

May touch everything else in the domain; nothing else may touch it.
"""
