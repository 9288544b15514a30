"""What every function does around what it is there for: read the event, wire, call, report. One module a kind of trigger."""
