"""Header changes as Envoy messages."""

from collections.abc import Iterator
from typing import Final

from meshwright.mesh.policies.routing import HeaderChanges
from protos.envoy.config.core.v3 import base_pb2

_Header = base_pb2.HeaderValueOption
_Action = base_pb2.HeaderValueOption.HeaderAppendAction
_HOST: Final = "host"
"""Header that Envoy refuses to change among the others."""


def to_add(changes: HeaderChanges) -> Iterator[_Header]:
    """Yield the headers that Envoy sets or adds to a message, without the host; it applies removals first."""
    for name, value in changes.put:
        if name != _HOST:
            yield header(name, value)
    for name, value in changes.add:
        if name != _HOST:
            yield header(name, value, _Action.APPEND_IF_EXISTS_OR_ADD)


def to_remove(changes: HeaderChanges) -> Iterator[str]:
    """Yield the headers that Envoy removes from a message; the host stays, as every request has one."""
    return (name for name in changes.remove if name != _HOST)


def host(changes: HeaderChanges) -> str | None:
    """Return the new host of a request, if the header `host` is set or added: a request has only one."""
    for name, value in reversed((*changes.put, *changes.add)):
        if name == _HOST:
            return value
    return None


def header(
    name: str,
    value: str,
    action: "base_pb2.HeaderValueOption.HeaderAppendAction" = _Action.OVERWRITE_IF_EXISTS_OR_ADD,
) -> _Header:
    """Return a header to set or add; percent signs are escaped, because they begin a command in Envoy."""
    written = base_pb2.HeaderValue(key=name, value=value.replace("%", "%%"))
    return _Header(header=written, append_action=action)
