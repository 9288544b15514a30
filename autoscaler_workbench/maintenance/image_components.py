"""Components of the images: image/*.yaml, kept as texts in image.yaml between marks (``make components``)."""

import re
from hashlib import sha256
from pathlib import Path
from textwrap import indent

from autoscaler.errors import ConfigError

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "image.yaml"
COMPONENTS = ("base", "gpu", "devices-1", "devices-2", "caches", "warm-up", "windows")
_INCLUDE = re.compile(r"^( *)@include (\S+)\n", re.MULTILINE)
# https://docs.aws.amazon.com/imagebuilder/latest/APIReference/API_CreateComponent.html
LONGEST_TEXT = 16_000


def text_of(name: str) -> str:
    """Read one component as CloudFormation is given it: files that it includes in their places."""
    written = (ROOT / "image" / f"{name}.yaml").read_text(encoding="utf-8")
    text = _INCLUDE.sub(lambda found: _indented((ROOT / found[2]).read_text(encoding="utf-8"), found[1]), written)
    if len(text) > LONGEST_TEXT:
        raise ConfigError(f"image/{name}.yaml: has {len(text)} characters; Image Builder takes {LONGEST_TEXT}")
    return text


def version_of(text: str) -> str:
    """Name a text's version after its content.

    A component cannot be changed, and CloudFormation replaces one by making the new one first: two texts must never share a version.
    """
    return f"1.0.{int(sha256(text.encode()).hexdigest()[:7], 16)}"


def with_components(template: str) -> str:
    """Return the template with all components as they are now."""
    for name in COMPONENTS:
        block = re.compile(rf"( *)# begin image/{name}\n.*?# end image/{name}\n", re.DOTALL)
        if not block.search(template):
            raise ConfigError(f"image.yaml: has no place for image/{name}")
        template = block.sub(lambda found, name=name: _block(found[1], name), template, count=1)  # type: ignore[misc]
    return template


def _indented(text: str, margin: str) -> str:
    return indent(text, margin, lambda line: bool(line.strip()))


def _block(margin: str, name: str) -> str:
    text = text_of(name)
    data = _indented(text, f"{margin}  ")
    return f"{margin}# begin image/{name}\n{margin}Version: {version_of(text)}\n{margin}Data: |\n{data}{margin}# end image/{name}\n"


if __name__ == "__main__":
    TEMPLATE.write_text(with_components(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
