"""What runs on a laptop: the command line, the simulated world, traces, the demo. Never deployed."""
