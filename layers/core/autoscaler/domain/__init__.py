"""What to do, never how: pure values and functions. No I/O, no clock, no environment, no logging.

Instants are epoch seconds (names end in ``_at`` or ``_until``), spans are seconds (``_seconds``), money is US dollars (``usd_``).
"""
