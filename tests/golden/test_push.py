"""Tests that push every golden case by ADS to a running Envoy, which accepts and uses it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration

from catalog.relations.identities import service_identities
from meshwright.sidecars.envoy.security.secrets import service_certificate, trust_root
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from tests.golden.cases import CASES, EVERY, MESSAGES, Group, case_groups, decoded, view
from tests.golden.resource_receiver import push, start_receiver
from tests.golden.running_mesh import OF_OLDER_ENVOYS, LiveMesh
from tests.tools.deadline import until
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, TypeUrl, encode
from xds.protocol.resources.snapshot import Snapshot

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]
Configuration = Mapping[TypeUrl, Mapping[str, Any]]
DUMPED: Mapping[TypeUrl, tuple[str, Callable[[Any], Any]]] = {
    LISTENER: ("dynamic_listeners", lambda item: item["active_state"]["listener"]),
    CLUSTER: ("dynamic_active_clusters", lambda item: item["cluster"]),
    ROUTE: ("dynamic_route_configs", lambda item: item["route_config"]),
    ENDPOINT: ("dynamic_endpoint_configs", lambda item: item["endpoint_config"]),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def receiver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """An Envoy whose configuration the tests choose."""
    async with AsyncExitStack() as ends:
        yield await start_receiver(tmp_path_factory.mktemp("push"), ends)


def with_secrets(mesh: LiveMesh, case: str, group: Group) -> Snapshot:
    """Return the group's resources with real certificates, because Envoy parses them."""
    identity = group.policy.identity
    names = service_identities(view(case))[identity] if case in CASES else ("shop.golden",)
    certificate = mesh.manager.ensure(identity, names, datetime.now(UTC))
    issued = (
        service_certificate(certificate),
        trust_root(group.policy.trust_domain, mesh.manager.trust_bundle()),
    )
    return Snapshot.of((*group.resources, *issued))


async def dump(mesh: LiveMesh, uuid: str) -> dict[TypeUrl, dict[str, Any]]:
    """Return Envoy's dynamic configuration: type → name → message."""
    admin = (mesh.state / uuid / "admin").read_text()
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"http://{admin}/config_dump?include_eds")
        sections = json.loads(await answer.text())["configs"]
    result: dict[TypeUrl, dict[str, Any]] = {}
    for type_url, (section, message_of) in DUMPED.items():
        held = [item for part in sections for item in part.get(section, [])]
        # A listener that is only draining is on its way out.
        messages = [
            message_of(item) for item in held if section != "dynamic_listeners" or "active_state" in item
        ]
        result[type_url] = {_name(message): _canonical(type_url, message) for message in messages}
    return result


def _name(message: Mapping[str, Any]) -> str:
    return str(message.get("name") or message["cluster_name"])


def _canonical(type_url: TypeUrl, message: Mapping[str, Any]) -> Any:
    plain = {key: value for key, value in message.items() if key != "@type"}
    parsed = json_format.ParseDict(plain, MESSAGES[type_url]())
    return json.loads(json_format.MessageToJson(parsed))


@pytest.mark.parametrize("case", EVERY)
async def test_envoy_accepts_each_golden_case_and_runs_it_as_sent(receiver: LiveMesh, case: str) -> None:
    """There is no NACK and no warning. The dump has each listener, route, cluster and assignment as sent."""
    for group in case_groups(case):
        assert await push(receiver, with_secrets(receiver, case, group)) == {}, group.name
        wanted: dict[TypeUrl, dict[str, Any]] = {
            type_url: {
                str(resource.name): decoded(resource)
                for resource in group.resources
                if resource.type_url == type_url
            }
            for type_url in DUMPED
        }
        wanted[ENDPOINT] = {name: _addresses(item) for name, item in wanted[ENDPOINT].items()}
        await _until_running(receiver, wanted)
    lines = receiver.logs["u"].read_text().splitlines()
    assert [line for line in lines if OF_OLDER_ENVOYS not in line] == []


async def _until_running(mesh: LiveMesh, wanted: Configuration) -> None:
    """Wait until the dump agrees (listeners drain, endpoints are last); show the difference on a timeout."""
    limit = asyncio.get_running_loop().time() + 60
    while (running := await _comparable(mesh, wanted)) != wanted:
        if asyncio.get_running_loop().time() > limit:
            assert running == wanted
        await asyncio.sleep(0.05)


async def _comparable(mesh: LiveMesh, wanted: Configuration) -> Configuration:
    running = await dump(mesh, "u")
    # Envoy keeps the routes of listeners that drain, and assignments for a while after their cluster.
    for type_url in (ROUTE, ENDPOINT):
        running[type_url] = {n: item for n, item in running[type_url].items() if n in wanted[type_url]}
    running[ENDPOINT] = {name: _addresses(item) for name, item in running[ENDPOINT].items()}
    return running


def _addresses(assignment: Any) -> list[tuple[str, int, int]]:
    """Return only the endpoints, because Envoy adds defaults and uses another form."""
    result = []
    for locality in assignment.get("endpoints", []):
        for lb_endpoint in locality["lbEndpoints"]:
            socket = lb_endpoint["endpoint"]["address"]["socketAddress"]
            result.append(
                (socket["address"], socket["portValue"], int(lb_endpoint.get("loadBalancingWeight", 1)))
            )
    return sorted(result)


async def test_resource_that_envoy_rejects_is_reported_as_rejected(receiver: LiveMesh) -> None:
    """Two listeners at one address are rejected with Envoy's message.

    This is the control of the check above.
    """
    first = next(
        group
        for group in case_groups("explicit")
        if any(resource.type_url == LISTENER for resource in group.resources)
    )
    snapshot = with_secrets(receiver, "explicit", first)
    one = next(iter(snapshot.resources(LISTENER).values()))
    doubled = snapshot.changed([_renamed(one)])

    rejected = await push(receiver, doubled)
    assert "duplicate" in rejected[LISTENER]
    log = receiver.logs["u"]

    async def said() -> bool:
        return "gRPC config for" in log.read_text()

    await until(said)  # the last of its lines: else it might come when the log has been emptied
    assert await push(receiver, snapshot) == {}
    log.write_text("")


async def test_push_waits_for_the_answer_to_the_changed_type(receiver: LiveMesh) -> None:
    """It waits although names and other types are unchanged, so the tests above did not look too early."""
    case, group, route = next(
        (case, group, resource)
        for case in CASES
        for group in case_groups(case)
        for resource in group.resources
        if resource.type_url == ROUTE
    )
    snapshot = with_secrets(receiver, case, group)
    for most in (100, 101, None):
        changed = snapshot if most is None else snapshot.changed([_limited(route, most)])
        assert await push(receiver, changed) == {}
        (status,) = receiver.server.statuses()
        assert [
            type_status.sent_version for type_status in status.types if type_status.type_url == ROUTE
        ] == [changed.version(ROUTE)]


def _limited(resource: Resource, most: int) -> Resource:
    """Set a field on which nothing depends."""
    message = route_pb2.RouteConfiguration()
    json_format.ParseDict(decoded(resource), message)
    message.max_direct_response_body_size_bytes.value = most * 1000
    return encode(message, resource.references)


async def test_deprecated_field_is_reported_in_envoys_log(receiver: LiveMesh) -> None:
    """This is the control of the check for warnings: Envoy accepts a deprecated field and logs it."""
    case, group, listener = next(
        (case, group, resource)
        for case in CASES
        for group in case_groups(case)
        for resource in group.resources
        if resource.type_url == LISTENER and b"TcpProxy" in resource.body
    )
    snapshot = with_secrets(receiver, case, group)
    assert await push(receiver, snapshot) == {}
    log = receiver.logs["u"]
    assert log.read_text() == ""
    assert await push(receiver, snapshot.changed([_out_of_date(listener)])) == {}

    async def said() -> bool:
        return "Using deprecated option" in log.read_text()

    await until(said)
    assert await receiver.stat("u", "runtime.deprecated_feature_use") > 0
    assert await push(receiver, snapshot) == {}
    log.write_text("")


def _out_of_date(resource: Resource) -> Resource:
    """Set a deprecated field of the listener's first TCP proxy."""
    message = listener_pb2.Listener()
    json_format.ParseDict(decoded(resource), message)
    proxies = [item for chain in message.filter_chains for item in chain.filters if "tcp_proxy" in item.name]
    old = tcp_proxy_pb2.TcpProxy.FromString(proxies[0].typed_config.value)
    old.access_log_flush_interval.CopyFrom(Duration(seconds=1))
    proxies[0].typed_config.Pack(old)
    return encode(message, resource.references)


def _renamed(resource: Resource) -> Resource:
    message = MESSAGES[LISTENER]()
    json_format.ParseDict(decoded(resource), message)
    message.name = "zz-another"  # type: ignore[attr-defined] # a listener has a name
    return encode(message)
