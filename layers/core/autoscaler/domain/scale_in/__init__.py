"""Scaling in: which agents are cordoned, in favour of what, and when one that is cordoned and idle may go.

May touch launching, repairs and what is below them.
"""
