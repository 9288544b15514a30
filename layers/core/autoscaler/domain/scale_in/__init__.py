"""Scaling in: which agents are cordoned, in favour of what, and which stopped ones are kept.

May touch launching, repairs and what is below them.
"""
