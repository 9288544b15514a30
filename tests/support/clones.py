"""The project as somebody else would have it: a clone of the work tree as it is, uncommitted changes included."""

import shutil
import subprocess

from packaging_root import ROOT


def clone_of_the_work_tree(folder):
    """Make one, with everything committed."""
    names = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "commit", "--quiet", "--message", "as it is")
    return folder


def status_of(clone, *options):
    """What git says has changed in it."""
    return _git(clone, "status", "--porcelain", *options).splitlines()


def _git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True).stdout
