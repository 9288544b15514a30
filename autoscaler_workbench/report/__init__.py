"""Reports: pages that need no network, of a run, a comparison and the dashboard.

May touch experiments, simulation and fakes; needs the extra `report`.
"""
