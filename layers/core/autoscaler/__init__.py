"""The shared code of the autoscaler: what to do (domain), with what (ports, adapters) and in which order (control)."""
