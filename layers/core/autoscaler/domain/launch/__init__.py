"""Launching: which item gets which executor, which agents are bought for it, and what forbids buying them.

May touch repairs (which slots are free, what comes back) and what is below them.
"""
