"""Runs that people order: which pools they may take place in, which are chosen, and what is done next for each.

May touch reports (when would a build start?) and what is below them.
"""
