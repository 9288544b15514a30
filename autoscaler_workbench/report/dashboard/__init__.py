"""The template's dashboard and alarms, evaluated on metrics that were published here instead of in CloudWatch.

May touch `html`.
"""
