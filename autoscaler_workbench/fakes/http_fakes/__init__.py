"""The APIs of the simulated Jenkins and AWS, over HTTP (`server`) or called directly (`clients`).

May touch the world. Held to recordings of a real Jenkins and to real boto3 by the contract tests.
"""
