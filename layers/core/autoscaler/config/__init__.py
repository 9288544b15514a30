"""Reads the fleet file, checks it, and translates it to the domain's values.

What only an error or a person needs (``findings``, ``words``, ``positions``) is imported when there is one: a function's cold
start never pays for it.
"""

from autoscaler.config.hosts import ControllerSettings, environment_name, url_problem
from autoscaler.config.load import check, load_fleet, load_settings
from autoscaler.config.problems import FleetFileError, Problem
from autoscaler.config.settings import FleetSettings

__all__ = [
    "ControllerSettings",
    "FleetFileError",
    "FleetSettings",
    "Problem",
    "check",
    "environment_name",
    "load_fleet",
    "load_settings",
    "url_problem",
]
