"""One outside system each. An adapter translates; it decides nothing, and retries nothing beyond its library's own mode."""
