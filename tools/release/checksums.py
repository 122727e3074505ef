"""Sums of a release's files, in the form of `sha256sum -c`."""

import hashlib
from collections.abc import Mapping


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sums(files: Mapping[str, bytes]) -> str:
    """Return a line per file, such as `e3b0c4...b855  meshwright-0.2.0.tgz`, in the order of the mapping."""
    return "".join(f"{digest(content)}  {name}\n" for name, content in files.items())
