"""The simulated world: Jenkins and EC2 as discrete events on one time-line, with chance and faults.

May touch nothing but the domain's labels and fleet: no AWS, no HTTP.
"""
