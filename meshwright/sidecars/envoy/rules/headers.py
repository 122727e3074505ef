"""Header changes as Envoy messages."""

from collections.abc import Iterator

from meshwright.mesh.policies.routing import HeaderChanges
from protos.envoy.config.core.v3 import base_pb2

_Header = base_pb2.HeaderValueOption
_Action = base_pb2.HeaderValueOption.HeaderAppendAction


def to_add(changes: HeaderChanges) -> Iterator[_Header]:
    """Yield the headers that Envoy sets or adds to a message; Envoy applies removals first."""
    for name, value in changes.put:
        yield header(name, value)
    for name, value in changes.add:
        yield header(name, value, _Action.APPEND_IF_EXISTS_OR_ADD)


def header(
    name: str,
    value: str,
    action: "base_pb2.HeaderValueOption.HeaderAppendAction" = _Action.OVERWRITE_IF_EXISTS_OR_ADD,
) -> _Header:
    """Return a header to set or add; percent signs are escaped, because they begin a command in Envoy."""
    written = base_pb2.HeaderValue(key=name, value=value.replace("%", "%%"))
    return _Header(header=written, append_action=action)
