"""Compiled Python for images, so that programs in containers need not compile at each start.

Nothing in a container may write bytecode, and a container starts from nothing. Without these files each start
of the command compiled all modules that it imports, which cost 0.7 to 1.7 s of CPU time.

The same source makes the same file, because it is the hash of the source that it names and not a time
(PEP 552). Files are kept in the cache of parts, by the hash of version and source.
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
"""The flag of a file that the interpreter does not compare with its source."""


def compiled(files: Files) -> Files:
    """Return the bytecode of all modules among files, where the interpreter looks for it."""
    return dict(_compiled(files))


def _compiled(files: Files) -> Iterator[tuple[str, Entry]]:
    folder = cache() / "bytecode"
    folder.mkdir(parents=True, exist_ok=True)
    for name, entry in files.items():
        if isinstance(entry, Path) and name.endswith(".py") and (made := _made(entry, folder)) is not None:
            at = PurePosixPath(name)
            yield f"{at.parent}/__pycache__/{at.stem}.{sys.implementation.cache_tag}.pyc", made


def _made(source: Path, folder: Path) -> Path | None:
    """Return the compiled file of a module; None for a file that is no Python, such as a template."""
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
    Path(file.name).replace(path)  # another process may make the same file
    return path
