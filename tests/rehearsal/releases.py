"""Released versions that have no tag."""

# The last commit of 0.2.0: its notes are unchanged since.
OLD_VERSION, OLD_COMMIT = "0.2.0", "f48fb6908599eeb7b6d18dc7d7dc4d6c8d584f21"
