"""One run as pictures: `report.html`, and PNG and SVG of the same charts.

May touch `html` and the simulation.
"""
