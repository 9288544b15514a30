"""User data of the launch templates: agent/ packed into a script a platform, kept in template.yaml between marks (``make user-data``).

EC2 takes 16 KB of it. So comments are left out, and all that Linux agents get is compressed there; what it says is in agent/.
"""

import lzma
import re
from base64 import b85decode, b85encode
from collections.abc import Callable
from pathlib import Path
from textwrap import indent, wrap

from autoscaler.errors import ConfigError
from autoscaler_workbench.maintenance.comments import without_comments

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
INSTALLERS = {"linux": "install", "linux-caches": "configure", "windows": "install.ps1"}
SCRIPTS = {"linux": "unpack", "windows": "install.ps1"}
_INCLUDE = re.compile(r"^@(include|packed) (\S+)\n", re.MULTILINE)
_PACKED = re.compile(r"(<<'END_OF_PACKED'\n)(.*?)(^ *END_OF_PACKED$)", re.DOTALL | re.MULTILINE)
_COLUMNS = 1000


def installer(platform: str) -> str:
    """The installer of a platform as people read it, with the files that it includes in their places."""
    return _with_its_files(ROOT / "agent" / platform / INSTALLERS[platform], lambda _, text: text)


def unpacked(text: str) -> str:
    """A script whose compressed parts can be read: other versions of the same library compress otherwise."""
    return _PACKED.sub(lambda found: found[1] + lzma.decompress(b85decode("".join(found[2].split()))).decode() + found[3], text)


def _with_its_files(path: Path, shortened: Callable[[str, str], str]) -> str:
    def included(found: re.Match[str]) -> str:
        text = _with_its_files(path.parent / found[2], shortened)
        return _compressed(text) if found[1] == "packed" else text

    return _INCLUDE.sub(included, shortened(path.name, path.read_text(encoding="utf-8")))


def _compressed(text: str) -> str:
    # The old format has the shortest head, and text has no alignment.
    how = {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}
    compressed = lzma.compress(text.encode(), format=lzma.FORMAT_ALONE, filters=[how])
    return "\n".join(wrap(b85encode(compressed).decode(), _COLUMNS)) + "\n"


def with_user_data(template: str) -> str:
    """The template with both scripts as they are now."""
    for platform in SCRIPTS:
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
    script = _with_its_files(ROOT / "agent" / platform / SCRIPTS[platform], without_comments)
    text = indent(script, f"{margin}  ", lambda line: bool(line.strip()))
    return f"{margin}# begin agent/{platform}\n{margin}- |\n{text}{margin}# end agent/{platform}\n"


if __name__ == "__main__":
    TEMPLATE.write_text(with_user_data(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
