"""File format for objects in etcd that survive a restart of the server: keys as they were read last.

The file has two lines. The first is JSON, `{"version": 1, "sha256": ...}`, with the checksum of the second,
so that a truncated or edited file is detected. Manifests are not secret.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import Base64Bytes, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from meshwright.etcd.values import KeyValue

MOST: Final = 64 * 1024 * 1024
"""Maximum bytes of all saved values; with more a restart needs etcd."""

Revision = Annotated[int, Field(ge=1)]


class SavedObjectsError(ValueError):
    """Saved objects cannot be used; the message has the reason in one clause."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class _Head:
    version: Literal[1]
    sha256: str


_HEAD: Final = TypeAdapter(_Head)
_ITEMS: Final = TypeAdapter(tuple[tuple[Base64Bytes, Base64Bytes, Revision, Revision], ...])


def fits(items: Iterable[KeyValue]) -> bool:
    """Return whether the values together have at most MOST bytes."""
    return sum(len(item.value) for item in items) <= MOST


def written(items: Iterable[KeyValue]) -> bytes:
    """Return the content of the file, sorted by key."""
    rows = [
        (_text(item.key), _text(item.value), item.created, item.modified)
        for item in sorted(items, key=lambda item: item.key)
    ]
    content = json.dumps(rows, separators=(",", ":")).encode()
    head = {"version": 1, "sha256": hashlib.sha256(content).hexdigest()}
    return b"%b\n%b\n" % (json.dumps(head).encode(), content)


def read(content: bytes) -> tuple[KeyValue, ...]:
    """Parse the file; raise SavedObjectsError for a damaged file or another version."""
    head, _, rest = content.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        if _HEAD.validate_json(head).sha256 != hashlib.sha256(body).hexdigest():
            raise SavedObjectsError("the content does not match the checksum in the first line")
        return tuple(KeyValue(*row) for row in _ITEMS.validate_json(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SavedObjectsError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
