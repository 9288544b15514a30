"""The page of a fleet: what it does now, live, and the orders of a person.

May touch nothing else in the workbench: what it shows is asked for through a `Source`.
"""
