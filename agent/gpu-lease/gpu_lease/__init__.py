"""Leases of a machine's graphics cards: a command holds its devices while it lives, and others wait in order."""
