"""Observe, decide, apply: the order of things, in the words of the ports. Knows no AWS and no HTTP.

Start with `passes`; `nodes` holds why no build is killed, `steps.launching` why nothing is launched twice.
"""
