"""The report of a comparison: who is cheapest and why, frontiers, a table of all, and any run over time.

May touch `html` and the experiments.
"""
