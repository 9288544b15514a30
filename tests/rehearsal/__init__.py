"""The deployed stack, rehearsed on an emulated AWS: see ``python -m rehearsal --help``."""
