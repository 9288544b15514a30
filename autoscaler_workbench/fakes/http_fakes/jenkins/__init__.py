"""Jenkins' REST API on a simulated controller, with the status codes, headers and JSON of the recordings.

May touch the world and `messages`, not AWS.
"""
