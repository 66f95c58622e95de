"""The directory in which scripts and tests keep downloads and results between runs."""

import os
from pathlib import Path


def cache_dir():
    own = os.environ.get("CORETAP_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(own) if own else Path(base) / "coretap"
