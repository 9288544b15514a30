"""The command line: what a person types, and what they see while it runs.

May touch everything else in the workbench.
"""
