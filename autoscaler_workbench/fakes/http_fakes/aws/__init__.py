"""The AWS APIs that the autoscaler calls, on the simulated EC2: EC2, Service Quotas, IAM, Lambda, CloudWatch.

May touch the world and `messages`, not Jenkins.
"""
