"""Fields that our resources set, by their paths, such as `HttpConnectionManager.stream_idle_timeout`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def fields(document: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and value of every field of a message in its JSON form; an extension begins a new path."""
    match document:
        case {"@type": str(name), **rest}:
            yield from fields(rest, name.rpartition(".")[2])
        case {} if not document:
            yield path, "{}"
        case Mapping():
            for name, value in document.items():
                yield from fields(value, f"{path}.{_CAMEL.sub('_', str(name)).lower()}")
        case list():
            for item in document:
                yield from fields(item, path)
        case bool():
            yield path, str(document).lower()
        case _:
            yield path, str(document)
