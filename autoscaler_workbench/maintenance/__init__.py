"""What make does to the project itself: user data, prices, pictures, the check of a fleet's name.

May touch everything else in the workbench but the command line.
"""
