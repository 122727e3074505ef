"""Tests of CSDS over a socket: the server's view of its client (envoy.service.status.v3)."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc.aio
import pytest
from google.protobuf.json_format import ParseDict

from protos.envoy.admin.v3 import config_dump_shared_pb2
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from protos.envoy.service.status.v3 import csds_pb2
from tests.feature.xds.authenticators import ByCertificate
from xds.cache import GroupKey, NodeKey
from xds.discovery import CLIENT_STATUS
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    SECRET,
    Resource,
    ResourceName,
    encode,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import SyncState, Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
FETCH = f"/{CLIENT_STATUS}/FetchClientStatus"
STREAM = f"/{CLIENT_STATUS}/StreamClientStatus"
READ = csds_pb2.ClientStatusResponse.FromString


async def test_csds_returns_only_the_clients_own_state_without_secrets(
    serve: Serve, connect: Connect
) -> None:
    """The answer has no stream of another client and no private key. Bodies can be excluded."""
    keeper = ByCertificate()
    served = await serve(keeper)
    secret = secret_pb2.Secret(name="s")
    secret.tls_certificate.private_key.inline_string = "KEY"
    resources = [encode(cluster_pb2.Cluster(name="c")), encode(secret)]
    served.cache.publish(
        {GroupKey("g"): Snapshot.of(resources)}, {NodeKey(n): GroupKey("g") for n in ("one", "two")}
    )
    mine, other = connect(served.port), None
    for type_url, names in ((CLUSTER, ()), (SECRET, ("s",))):
        await mine.ask(type_url, *names)
        response = await mine.response()
        await mine.ask(type_url, *names, nonce=response.nonce)
    keeper.key = NodeKey("two")
    other = connect(served.port)
    await other.ask(CLUSTER, node="u2")
    await other.response()
    keeper.key = NodeKey("one")

    fetch = mine.channel.unary_unary(FETCH, response_deserializer=READ)
    answer = await fetch(b"")
    stream = mine.channel.stream_stream(STREAM, response_deserializer=READ)()
    await stream.write(csds_pb2.ClientStatusRequest(exclude_resource_contents=True).SerializeToString())
    bare = await stream.read()

    assert [config.node.id for config in answer.config] == ["u1"]
    configs = answer.config[0].generic_xds_configs
    assert [(c.type_url, c.name, c.client_status) for c in configs] == [
        (CLUSTER, "c", config_dump_shared_pb2.ACKED),
        (SECRET, "s", config_dump_shared_pb2.ACKED),
    ]
    assert configs[0].HasField("xds_config")
    assert b"KEY" not in answer.SerializeToString()
    assert not any(c.HasField("xds_config") for c in bare.config[0].generic_xds_configs)


class ReportedResource(NamedTuple):
    """A resource in a CSDS answer: version, presence of the body, and the same for a rejected version."""

    name: str
    config: int
    client: int
    version: str = ""
    body: bool = False
    error: tuple[str, str, bool] | None = None


def _told(generic_xds_config: csds_pb2.ClientConfig.GenericXdsConfig) -> ReportedResource:
    error = generic_xds_config.error_state
    return ReportedResource(
        generic_xds_config.name,
        generic_xds_config.config_status,
        generic_xds_config.client_status,
        generic_xds_config.version_info,
        generic_xds_config.HasField("xds_config"),
        (error.version_info, error.details, error.HasField("failed_configuration"))
        if generic_xds_config.HasField("error_state")
        else None,
    )


def _synced(resource: Resource, *, body: bool = True) -> ReportedResource:
    return ReportedResource(
        resource.name, csds_pb2.SYNCED, config_dump_shared_pb2.ACKED, resource.version, body
    )


def _stale(resource: Resource) -> ReportedResource:
    return ReportedResource(
        resource.name, csds_pb2.STALE, config_dump_shared_pb2.REQUESTED, resource.version, body=True
    )


def _missing(name: str) -> ReportedResource:
    return ReportedResource(name, csds_pb2.NOT_SENT, config_dump_shared_pb2.DOES_NOT_EXIST)


def _cluster(name: str, seconds: int = 1) -> Resource:
    cluster = cluster_pb2.Cluster(name=name)
    cluster.connect_timeout.seconds = seconds
    return encode(cluster)


def _listener(name: str, cluster: str) -> Resource:
    listener = listener_pb2.Listener(name=name, stat_prefix=cluster)
    return encode(listener, [(CLUSTER, ResourceName(cluster))])


def _publish(served: Any, *resources: Resource) -> None:
    served.cache.publish({GroupKey("g"): Snapshot.of(resources)}, {NodeKey("n"): GroupKey("g")})


async def _asked(client: Any, **request: Any) -> list[list[ReportedResource]]:
    fetch = client.channel.unary_unary(FETCH, response_deserializer=READ)
    message = ParseDict(request, csds_pb2.ClientStatusRequest())
    answer = await fetch(message.SerializeToString())
    return [list(map(_told, config.generic_xds_configs)) for config in answer.config]


async def _nack(client: Any, response: Any, message: str) -> None:
    kind = type(response).__name__.replace("Response", "Request")
    request = getattr(discovery_pb2, kind)(type_url=response.type_url, response_nonce=response.nonce)
    request.error_detail.message = message
    await client.send(request)


async def test_each_resource_has_its_own_status(serve: Serve, connect: Connect) -> None:
    """A rejected cluster has the status ERROR, and the other cluster stays SYNCED."""
    served = await serve()
    one, two, worse = _cluster("one"), _cluster("two"), _cluster("two", 2)
    _publish(served, one, two)
    client = connect(served.port, Variant.DELTA)
    await client.ask(CLUSTER)
    response = await client.response()
    assert await _asked(client) == [[_stale(one), _stale(two)]]

    await client.ask(CLUSTER, nonce=response.nonce)
    await client.ask(ENDPOINT, "none")
    await client.response()
    assert await _asked(client) == [[_synced(one), _synced(two), _missing("none")]]

    _publish(served, one, worse)
    response = await client.response()
    assert (await _asked(client))[0][:2] == [_synced(one), _stale(worse)]

    text = "Error adding/updating cluster(s) two: it takes too long"
    await _nack(client, response, text)
    await client.ask(ENDPOINT, "other")
    await client.response()
    bad = ReportedResource(
        "two", csds_pb2.ERROR, config_dump_shared_pb2.NACKED, error=(worse.version, text, True)
    )
    assert (await _asked(client))[0][:2] == [_synced(one), bad]


@pytest.mark.parametrize("variant", Variant)
async def test_listener_that_waits_for_its_cluster_is_not_reported_as_sent(
    serve: Serve, connect: Connect, eventually: Eventually, variant: Variant
) -> None:
    """The listener is held until its cluster is acknowledged, so the old version is reported."""
    served = await serve()
    old, new = [_cluster("one"), _listener("in", "one")], [_cluster("two"), _listener("in", "two")]
    _publish(served, *old)
    client = connect(served.port, variant)
    for type_url in (CLUSTER, LISTENER):
        await client.ask(type_url)
        response = await client.response()
        await client.ask(type_url, nonce=response.nonce)
    await eventually(
        lambda: (
            {item.state for status in served.server.statuses() for item in status.types} == {SyncState.SYNCED}
        )
    )
    _publish(served, old[0], *new)
    assert (await client.response()).type_url == CLUSTER

    (messages,) = await _asked(client)
    assert [item for item in messages if item.name == "in"] == [_synced(old[1], body=False)]
    assert {item.name: item.version for item in messages} == {
        "one": old[0].version,
        "two": new[0].version,
        "in": old[1].version,
    }


@pytest.mark.parametrize(
    ("matchers", "asked"),
    [
        ([], True),
        ([{}], True),
        ([{"nodeId": {"exact": "u1"}}], True),
        ([{"nodeId": {"exact": "U1"}}], False),
        ([{"nodeId": {"exact": "U1", "ignoreCase": True}}], True),
        ([{"nodeId": {"exact": "u2"}}, {"nodeId": {"prefix": "u"}}], True),
        ([{"nodeId": {"prefix": "1"}}], False),
        ([{"nodeId": {"suffix": "1"}}], True),
        ([{"nodeId": {"contains": "u1x"}}], False),
        ([{"nodeId": {"contains": "1"}}], True),
        ([{"nodeId": {"safeRegex": {"regex": "u[0-9]"}}}], True),
        ([{"nodeId": {"safeRegex": {"regex": "u"}}}], False),
    ],
)
async def test_node_matchers_select_the_node_by_its_id(
    serve: Serve, connect: Connect, matchers: list[dict[str, Any]], asked: bool
) -> None:
    """One matching entry is sufficient, and a regular expression must match the whole id."""
    served = await serve()
    client = connect(served.port, Variant.DELTA)
    await client.ask(ENDPOINT, "none")
    _publish(served)
    await client.response()

    assert await _asked(client, node_matchers=matchers) == ([[_missing("none")]] if asked else [])


@pytest.mark.parametrize(
    ("matcher", "said"),
    [
        ({"nodeMetadatas": [{"path": [{"key": "app"}]}]}, "node_metadatas cannot be matched"),
        ({"nodeId": {}}, "must have one of exact, prefix, suffix, contains and safe_regex"),
        ({"nodeId": {"custom": {"name": "x"}}}, "must have one of"),
        ({"nodeId": {"safeRegex": {"regex": "(?=u)"}}}, "safe_regex is not an RE2 regular expression"),
    ],
)
async def test_unsupported_node_matcher_is_refused(
    serve: Serve, connect: Connect, matcher: dict[str, Any], said: str
) -> None:
    """INVALID_ARGUMENT has the reason, because an answer without the matcher would be wrong."""
    client = connect((await serve()).port)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await _asked(client, node_matchers=[{"nodeId": {"exact": "u1"}}, matcher])

    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert said in str(failed.value.details())
