"""What carries the steps of a plan out, a file for each subject; `apply` has the table of them.

The steps themselves are data, and stand in `domain.facts.plan`: the pure domain makes them.
"""
