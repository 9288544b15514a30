"""Paths of Jenkins' URLs: each name percent-encoded by itself, as hudson.Util.rawEncode does it."""

from functools import lru_cache
from urllib.parse import quote

_STAY = "!$&'()*+,-.=@_"  # beside letters and digits


@lru_cache(maxsize=10_000)
def raw_encode(name: str) -> str:
    """Encode one name as UTF-8; a slash is encoded, too."""
    return quote(name, safe=_STAY).replace("~", "%7E")  # which quote() never encodes, and Jenkins does


@lru_cache(maxsize=10_000)
def job_path(full_name: str) -> str:
    """Path of a job by its full name: ``a b/c`` -> ``job/a%20b/job/c/``."""
    return "".join(f"job/{raw_encode(name)}/" for name in full_name.split("/"))
