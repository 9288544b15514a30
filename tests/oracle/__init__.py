"""The oracle: does the autoscaler still decide, pass by pass, what it decided when these runs were recorded?"""
