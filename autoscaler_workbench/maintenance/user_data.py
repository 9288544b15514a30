"""User data of the launch templates: agent/ packed into a script a platform, kept in template.yaml between marks (``make user-data``).

EC2 takes 16 KB of it. So the Linux agent itself is compressed there; what it says is in agent/.
"""

import gzip
import re
from base64 import b64decode, encodebytes
from pathlib import Path
from textwrap import indent

from autoscaler.errors import ConfigError

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
INSTALLERS = {"linux": "install", "linux-caches": "configure", "windows": "install.ps1"}
_INCLUDE = re.compile(r"^@(include|packed) (\S+)\n", re.MULTILINE)
_PACKED = re.compile(r"(?<=\n) *H4sI[A-Za-z0-9+/=]+\n(?: *[A-Za-z0-9+/=]+\n)*")


def packed(platform: str) -> str:
    """The installer of a platform, with the files that it includes in their places."""
    directory = ROOT / "agent" / platform
    installer = (directory / INSTALLERS[platform]).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _included(directory / found[2], is_packed=found[1] == "packed"), installer)


def unpacked(text: str) -> str:
    """A script whose compressed parts can be read: other versions of the same library compress otherwise."""
    return _PACKED.sub(lambda found: gzip.decompress(b64decode(found[0])).decode(), text)


def _included(path: Path, *, is_packed: bool) -> str:
    return encodebytes(gzip.compress(path.read_bytes(), mtime=0)).decode() if is_packed else path.read_text(encoding="utf-8")


def with_user_data(template: str) -> str:
    """The template with both installers as they are now."""
    for platform in INSTALLERS:
        block = re.compile(rf"( *)# begin agent/{platform}\n.*?# end agent/{platform}\n", re.DOTALL)
        if not block.search(template):
            raise ConfigError(f"template.yaml: has no place for agent/{platform}")
        template = block.sub(lambda found, platform=platform: _kept(found, platform), template, count=1)  # type: ignore[misc]
    return template


def _kept(found: re.Match[str], platform: str) -> str:
    """The block as it is, where it holds what it must."""
    block = _block(found[1], platform)
    return found[0] if unpacked(found[0]) == unpacked(block) else block


def _block(margin: str, platform: str) -> str:
    text = indent(packed(platform), f"{margin}  ", lambda line: bool(line.strip()))
    return f"{margin}# begin agent/{platform}\n{margin}- |\n{text}{margin}# end agent/{platform}\n"


if __name__ == "__main__":
    TEMPLATE.write_text(with_user_data(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
