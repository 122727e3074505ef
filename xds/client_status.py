"""CSDS: a client asks what the server believes of it (envoy.service.status.v3)."""

from collections.abc import Callable, Iterable

from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp

from protos.envoy.admin.v3 import config_dump_shared_pb2
from protos.envoy.service.status.v3 import csds_pb2
from xds.cache import NodeKey
from xds.resource import SECRET
from xds.snapshot import Snapshot
from xds.status import StreamStatus, SyncState, TypeStatus

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


def client_status(
    statuses: Iterable[StreamStatus], snapshot: Callable[[NodeKey], Snapshot | None], *, contents: bool
) -> csds_pb2.ClientStatusResponse:
    """Describe streams: per resource its state, version and, with `contents`, its body; never a secret's."""
    response = csds_pb2.ClientStatusResponse()
    for status in statuses:
        config = response.config.add()
        config.node.id = status.node.id if status.node else ""
        config.node.cluster = status.node.cluster if status.node else ""
        config.client_scope = f"stream {status.number} ({status.variant}) of {status.node_key}"
        held = snapshot(status.node_key)
        for type_status in status.types:
            _add_type(config, type_status, held, contents=contents)
    return response


def _add_type(
    config: csds_pb2.ClientConfig, status: TypeStatus, snapshot: Snapshot | None, *, contents: bool
) -> None:
    resources = snapshot.resources(status.type_url) if snapshot is not None else {}
    for name in status.names:
        resource = resources.get(name)
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
