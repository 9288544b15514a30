"""Builders: they take only what a test talks about."""
