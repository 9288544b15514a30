"""User data of the launch templates: agent/ packed into a script a platform, kept in template.yaml between marks (``make user-data``)."""

import re
from pathlib import Path
from textwrap import indent

from autoscaler.errors import ConfigError

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
INSTALLERS = {"linux": "install", "linux-caches": "configure", "windows": "install.ps1"}
_INCLUDE = re.compile(r"^@include (\S+)\n", re.MULTILINE)


def packed(platform: str) -> str:
    """The installer of a platform, with the files that it includes in their places."""
    directory = ROOT / "agent" / platform
    installer = (directory / INSTALLERS[platform]).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: (directory / found[1]).read_text(encoding="utf-8"), installer)


def with_user_data(template: str) -> str:
    """The template with both installers as they are now."""
    for platform in INSTALLERS:
        block = re.compile(rf"( *)# begin agent/{platform}\n.*?# end agent/{platform}\n", re.DOTALL)
        if not block.search(template):
            raise ConfigError(f"template.yaml: has no place for agent/{platform}")
        template = block.sub(lambda found, platform=platform: _block(found[1], platform), template, count=1)  # type: ignore[misc]
    return template


def _block(margin: str, platform: str) -> str:
    text = indent(packed(platform), f"{margin}  ", lambda line: bool(line.strip()))
    return f"{margin}# begin agent/{platform}\n{margin}- |\n{text}{margin}# end agent/{platform}\n"


if __name__ == "__main__":
    TEMPLATE.write_text(with_user_data(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
