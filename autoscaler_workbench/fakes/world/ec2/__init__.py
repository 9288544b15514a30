"""The simulated EC2: one region of one account, with its instances, capacity and error codes.

May touch the time-line, physics and faults, not Jenkins.
"""
