"""Client status (CSDS, envoy.service.status.v3): the server's view of a client's streams."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp

from protos.envoy.admin.v3 import config_dump_shared_pb2
from protos.envoy.service.status.v3 import csds_pb2
from xds.budget import Cost, LimitKind, check
from xds.limits import Limits
from xds.protocol.resources.resource import SECRET
from xds.server.resource_status import ResourceState, ResourceStatus, StreamDescription, TypeResources
from xds.server.streams.call import Call

GenericConfig = csds_pb2.ClientConfig.GenericXdsConfig

_STATES: Final = {
    ResourceState.MISSING: (csds_pb2.NOT_SENT, config_dump_shared_pb2.DOES_NOT_EXIST),
    ResourceState.NOT_SENT: (csds_pb2.NOT_SENT, config_dump_shared_pb2.REQUESTED),
    ResourceState.SENT: (csds_pb2.STALE, config_dump_shared_pb2.REQUESTED),
    ResourceState.ACCEPTED: (csds_pb2.SYNCED, config_dump_shared_pb2.ACKED),
    ResourceState.REJECTED: (csds_pb2.ERROR, config_dump_shared_pb2.NACKED),
}

AT_ONCE: Final = 256
"""Resources described before other tasks get a turn."""

COPIES: Final = 3
"""Copies of a description in memory: the message, its bytes, and gRPC's bytes."""


async def client_status(
    call: Call, streams: Iterable[Callable[[], StreamDescription]], limits: Limits, *, contents: bool
) -> csds_pb2.ClientStatusResponse:
    """Describe a client's own streams: state and version of each resource and, with `contents`, its body.

    Bodies of secrets are never included. The work is done in small steps, and the memory is charged to the
    call; the caller must release the charge. Raises Excess for a too large description.
    """
    response, size = csds_pb2.ClientStatusResponse(), 0
    for stream in streams:
        began = time.thread_time()
        for number, added in enumerate(_described(response, stream(), contents=contents)):
            size += added
            check(LimitKind.ANSWER, size, limits.client_status_bytes)
            if number % AT_ONCE == 0:
                call.bill.charge(csds_pb2.ClientStatusResponse, Cost(bytes=COPIES * size))
                call.spent(began)
                await call.pause()
                began = time.thread_time()
        call.spent(began)
    return response


def _described(
    response: csds_pb2.ClientStatusResponse, stream: StreamDescription, *, contents: bool
) -> Iterator[int]:
    """Add a stream to the response, resource by resource; yield the bytes that each step added."""
    config = response.config.add()
    config.node.id = stream.node.id if stream.node else ""
    config.node.cluster = stream.node.cluster if stream.node else ""
    config.client_scope = stream.scope
    yield config.ByteSize()
    for type_resources in stream.types:
        for resource in type_resources.resources:
            yield _add(config, type_resources, resource, contents=contents)


def _add(
    config: csds_pb2.ClientConfig, kind: TypeResources, status: ResourceStatus, *, contents: bool
) -> int:
    """Add a resource.

    Version and body of a rejected one belong to the error, because they are not in force.
    """
    config_status, client_status = _STATES[status.state]
    generic = config.generic_xds_configs.add(
        type_url=kind.type_url, name=status.name, config_status=config_status, client_status=client_status
    )
    moment = None if kind.sent_at is None else Timestamp()
    if kind.sent_at is not None and moment is not None:
        moment.FromDatetime(kind.sent_at)
    body = None
    if contents and status.resource is not None and kind.type_url != SECRET:
        body = Any.FromString(status.resource.body)
    generic.MergeFrom(
        _rejected(status, body, moment)
        if status.state is ResourceState.REJECTED
        else GenericConfig(version_info=status.version, xds_config=body, last_updated=moment)
    )
    return generic.ByteSize()


def _rejected(status: ResourceStatus, body: Any | None, moment: Timestamp | None) -> GenericConfig:
    error = config_dump_shared_pb2.UpdateFailureState(
        failed_configuration=body,
        last_update_attempt=moment,
        details=status.error_message,
        version_info=status.version,
    )
    return GenericConfig(error_state=error, last_updated=moment)
