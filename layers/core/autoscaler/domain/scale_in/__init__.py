"""Scaling in: which agents are cordoned, in favour of what, and when an idle one may be terminated.

May touch launching, repairs and what is below them.
"""
