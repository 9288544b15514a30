"""Hostile worlds: drawn from a seed, unkind in several ways at once, and judged by what happened in them, never by our plans."""
