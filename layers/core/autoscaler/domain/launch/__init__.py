"""Launching: who gets which executor, what agents are bought for it, and what keeps them from being bought.

May touch repairs (which slots are free, what comes back) and what is below them.
"""
