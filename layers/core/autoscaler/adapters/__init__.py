"""Adapters, one outside system each. They translate, decide nothing, and retry nothing beyond their library's own mode."""
