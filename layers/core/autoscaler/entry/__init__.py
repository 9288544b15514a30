"""Entry points of the functions: read the event, wire, call, report. One module a kind of trigger."""
