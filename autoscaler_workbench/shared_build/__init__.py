"""A build of 600 small tasks, made by processes that share nothing but a folder: a cache of artifacts, claims and logs.

Nobody schedules. Each builder takes tasks that are ready, in an order of its own, until all are published.
"""
