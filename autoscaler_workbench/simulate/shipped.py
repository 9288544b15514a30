"""Files that come with the package: data of its own, and those parts of the deployment that it reads."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
DATA = _PACKAGE / "data"


def deployed(name: str) -> Path:
    """Find a file or folder of the deployment: a wheel carries a copy, a checkout has it in its root."""
    carried = _PACKAGE / "deployment" / name
    return carried if carried.exists() else _PACKAGE.parent / name
