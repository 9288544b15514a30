"""gpu-lease as two texts for the images: Image Builder takes 16,000 characters a component, and its sources have 70,000.

The texts are kept in agent/gpu-lease. They are made anew only when the files in them differ from the sources: what one compressor writes,
another need not write again.
"""

import io
import lzma
import tarfile
from base64 import b64decode, b64encode
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "agent" / "gpu-lease"
PARTS = (FOLDER / "archive.1", FOLDER / "archive.2")
PACKED = ("gpu-lease", "gpu-lease.socket", "gpu-lease@.service", "install", "gpu_lease/*.py")
COLUMNS = 1000  # each line costs the margin of its place in a component


def sources() -> dict[str, tuple[int, str]]:
    """Read what is installed: mode and text, by name."""
    paths = [path for pattern in PACKED for path in sorted(FOLDER.glob(pattern))]
    return {str(path.relative_to(FOLDER)): (_mode(path), path.read_text(encoding="utf-8")) for path in paths}


def packed(files: dict[str, tuple[int, str]]) -> list[str]:
    """Pack files into lines, in two texts of the same length."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, (mode, text) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    compressed = lzma.compress(archive.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    lines = wrap(b64encode(compressed).decode("ascii"), COLUMNS)
    half = (len(lines) + 1) // 2
    return ["\n".join(part) + "\n" for part in (lines[:half], lines[half:])]


def unpacked(texts: list[str]) -> dict[str, tuple[int, str]]:
    """Read the files in the texts."""
    compressed = b64decode("".join(texts))
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(compressed))) as tar:
        files = [(entry, tar.extractfile(entry)) for entry in tar.getmembers()]
        return {entry.name: (entry.mode, content.read().decode("utf-8")) for entry, content in files if content}


def up_to_date() -> bool:
    """Whether the texts hold the sources as they are."""
    return all(part.exists() for part in PARTS) and unpacked([part.read_text(encoding="ascii") for part in PARTS]) == sources()


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


if __name__ == "__main__" and not up_to_date():
    for part, text in zip(PARTS, packed(sources()), strict=True):
        part.write_text(text, encoding="ascii")
