"""Files that appear as a whole, or not at all, and of which the first with a name stays."""

import os
from pathlib import Path
from tempfile import mkstemp


def put_first(path: Path, content: bytes, *, partial: Path, durable: bool) -> bool:
    """Write a file beside its place and link it there; False where the name is taken, even if two try at the same moment.

    ``durable``: it survives a power cut, too, and not only the end of its writer.
    """
    number, written = mkstemp(dir=partial)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(number)
        os.link(written, path)  # where a rename would replace what is there
    except FileExistsError:
        return False
    finally:
        os.unlink(written)  # noqa: PTH108 - mkstemp's name is no Path
    return True
