"""Headers that are set and added, in Envoy's words."""

from collections.abc import Iterator

from meshwright.mesh.policies.routing import HeaderChanges
from protos.envoy.config.core.v3 import base_pb2

_Header = base_pb2.HeaderValueOption
_Action = base_pb2.HeaderValueOption.HeaderAppendAction


def to_add(changes: HeaderChanges) -> Iterator[_Header]:
    """Yield what comes, after what is removed has gone: that is Envoy's order."""
    for name, value in changes.put:
        yield header(name, value)
    for name, value in changes.add:
        yield header(name, value, _Action.APPEND_IF_EXISTS_OR_ADD)


def header(
    name: str,
    value: str,
    action: "base_pb2.HeaderValueOption.HeaderAppendAction" = _Action.OVERWRITE_IF_EXISTS_OR_ADD,
) -> _Header:
    """Return a header that comes: to Envoy a percent sign begins a command."""
    written = base_pb2.HeaderValue(key=name, value=value.replace("%", "%%"))
    return _Header(header=written, append_action=action)
