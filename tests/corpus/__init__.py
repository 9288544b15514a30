"""Recorded decisions: facts in, plan out. What is decided otherwise than it was recorded is
printed: `make corpus`."""
