"""Reports: the decision as people, metrics and agents that register see it.

May touch everything else in the domain; nothing else may touch it.
"""
