"""Runs that people order: which pools they may take place in, which are chosen, and what is done next for each.

May touch launching (when would a job start?) and what is below it.
"""
