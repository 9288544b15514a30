"""How a refused environment variable is named: in one line, however long its value is."""

from autoscaler.domain.wording import shortened
from autoscaler.errors import ConfigError


def refused(name: str, value: str, rule: str) -> ConfigError:
    """Make the error of a variable whose value breaks a rule."""
    return ConfigError(f"environment variable {name} ({shortened(value) or 'missing'}): {rule}")
