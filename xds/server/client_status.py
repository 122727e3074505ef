"""CSDS: a client asks what the server believes of it (envoy.service.status.v3)."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp

from protos.envoy.admin.v3 import config_dump_shared_pb2
from protos.envoy.service.status.v3 import csds_pb2
from xds.protocol.resource import SECRET, ResourceName
from xds.protocol.snapshot import Snapshot
from xds.server.budget import Bound, Cost, check
from xds.server.call import Call
from xds.server.limits import Limits
from xds.server.status import StreamStatus, SyncState, TypeStatus

_CONFIG = {
    SyncState.ASKED: csds_pb2.NOT_SENT,
    SyncState.PENDING: csds_pb2.STALE,
    SyncState.SYNCED: csds_pb2.SYNCED,
    SyncState.REJECTED: csds_pb2.ERROR,
}
_CLIENT = {
    SyncState.ASKED: config_dump_shared_pb2.REQUESTED,
    SyncState.PENDING: config_dump_shared_pb2.REQUESTED,
    SyncState.SYNCED: config_dump_shared_pb2.ACKED,
    SyncState.REJECTED: config_dump_shared_pb2.NACKED,
}

AT_ONCE: Final = 256
"""Resources described before others have their turn."""

COPIES: Final = 3
"""A description is in memory as a message, as bytes, and as gRPC's bytes."""


async def client_status(
    call: Call,
    statuses: Iterable[Callable[[], StreamStatus]],
    snapshot: Snapshot | None,
    limits: Limits,
    *,
    contents: bool,
) -> csds_pb2.ClientStatusResponse:
    """Describe a client's own streams: per resource its state, version and, with `contents`, its body.

    Never a secret's. It is done bit by bit, and what it takes is charged to the call, whose caller gives it
    back; raises Excess for a description that is too large.
    """
    response, size = csds_pb2.ClientStatusResponse(), 0
    for status in statuses:
        began = time.thread_time()
        for number, added in enumerate(_described(response, status(), snapshot, contents=contents)):
            size += added
            check(Bound.ANSWER, size, limits.client_status_bytes)
            if number % AT_ONCE == 0:
                call.bill.charge(csds_pb2.ClientStatusResponse, Cost(bytes=COPIES * size))
                call.spent(began)
                await call.pause()
                began = time.thread_time()
        call.spent(began)
    return response


def _described(
    response: csds_pb2.ClientStatusResponse,
    status: StreamStatus,
    snapshot: Snapshot | None,
    *,
    contents: bool,
) -> Iterator[int]:
    """Add a stream to the response, resource by resource; yield how many bytes each has."""
    config = response.config.add()
    config.node.id = status.node.id if status.node else ""
    config.node.cluster = status.node.cluster if status.node else ""
    config.client_scope = f"stream {status.number} ({status.variant}) of {status.node_key}"
    yield config.ByteSize()
    for each in status.types:
        for name in each.names:
            yield _add(config, each, name, snapshot, contents=contents)


def _add(
    config: csds_pb2.ClientConfig,
    status: TypeStatus,
    name: ResourceName,
    snapshot: Snapshot | None,
    *,
    contents: bool,
) -> int:
    resource = snapshot.resources(status.type_url).get(name) if snapshot is not None else None
    generic = config.generic_xds_configs.add(
        type_url=status.type_url,
        name=name,
        version_info=resource.version if resource else "",
        config_status=_CONFIG[status.state],
        client_status=_CLIENT[status.state] if resource else config_dump_shared_pb2.DOES_NOT_EXIST,
    )
    if status.sent_at is not None:
        moment = Timestamp()
        moment.FromDatetime(status.sent_at)
        generic.last_updated.CopyFrom(moment)
    if resource is not None and contents and status.type_url != SECRET:
        generic.xds_config.CopyFrom(Any.FromString(resource.body))
    if status.rejection is not None:
        generic.error_state.details = status.rejection.message
    return generic.ByteSize()
