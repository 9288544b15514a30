"""What runs on a laptop: the command line, experiments, simulations, fakes and reports. Never deployed."""
