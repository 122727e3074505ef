"""Compiled Python for images, so that programs in containers need not compile their modules at each start.

A container starts from a fresh image, and its programs cannot write bytecode. Without these files each start
of the command compiled all imported modules, which cost 0.7 to 1.7 s of CPU time.

Equal sources make equal files, because a file has the hash of its source in place of a time (PEP 552). Files
are cached by the hash of Python version and source.
"""

import hashlib
import importlib.util
import marshal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from tools.real_parts.building import cache
from tools.real_parts.images.layers import Entry, Files

_UNCHECKED: Final = (0b01).to_bytes(4, "little")
"""Flag of hash-based files that the interpreter does not compare with their sources."""


def compiled(files: Files) -> Files:
    """Return the bytecode of all Python modules among `files`, at the paths where the interpreter looks."""
    return dict(_compiled(files))


def _compiled(files: Files) -> Iterator[tuple[str, Entry]]:
    folder = cache() / "bytecode"
    folder.mkdir(parents=True, exist_ok=True)
    for name, entry in files.items():
        if isinstance(entry, Path) and name.endswith(".py") and (made := _made(entry, folder)) is not None:
            at = PurePosixPath(name)
            yield f"{at.parent}/__pycache__/{at.stem}.{sys.implementation.cache_tag}.pyc", made


def _made(source: Path, folder: Path) -> Path | None:
    """Return the compiled file of a module; None if the file is not valid Python, for example a template."""
    text = source.read_bytes()
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + text).hexdigest()
    path = folder / f"{digest}.pyc"
    if path.exists():
        return path
    try:
        code = compile(text, source.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(text)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(head + marshal.dumps(code))
    Path(file.name).replace(path)  # atomic, because another process may write the same file
    return path
