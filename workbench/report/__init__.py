"""Reports: HTML pages that need no network, for a run, a comparison and the CloudWatch dashboard.

May touch experiments, simulation and fakes; needs the extra `report`.
"""
