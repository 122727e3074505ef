"""Tests of the document: its contents by policy, its delivery, and its readers."""

import json
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.relations.groups import group_of
from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import issue_pair
from meshwright.mesh.names import Namespace, TrustDomain
from meshwright.mesh.workload import WorkloadKey
from meshwright.sidecars.contract.contexts import Clients
from meshwright.sidecars.contract.driver import Credentials
from meshwright.sidecars.contract.errors import NothingThereError
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.document.readers import LINGER_SECONDS, Readers
from meshwright.sidecars.document.server import PATH, DocumentServer, contents, version
from meshwright.sidecars.document.tls import server_context
from meshwright.sidecars.document.translate import CREDENTIALS, DOCUMENT, NAME
from tests.meshes import values as a
from tests.meshes.views import POLICY, view, workload
from tests.tools.own_authority import own_authority
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, AuthenticationUnavailable, NoObserver, Peer, StreamEnd
from xds.limits import Limits
from xds.protocol.resources.resource import Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.type_urls import Version
from xds.protocol.wire import Nonce, Rejection, Response
from xds.server.tls import TlsIdentity
from xds.stream_status import SyncState, Variant

NODE = NodeKey("one.store.shop")
PEER = Peer(b"pem", "127.0.0.1:1")
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
DRIVER = DocumentDriver()
PERMISSIVE = """
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec:
  traffic: {enablePermissiveTrafficPolicyMode: true}
"""
AUTHORIZED = """
apiVersion: policy.meshwright.dev/v1alpha1
kind: ExternalAuthorization
metadata: {name: opa, namespace: shop}
spec: {host: opa.opa.svc.cluster.local, port: 9191}
"""


def _policy(*documents: str) -> ProxyPolicy:
    of = view(*documents)
    return proxy_policy(of, group_of(of, of.workloads[WorkloadKey(Namespace("shop"), "one")]))


def _document(policy: ProxyPolicy) -> Any:
    (resource,) = _made(policy)
    return json.loads(resource.body)


def _made(policy: ProxyPolicy) -> tuple[Resource, ...]:
    (piece,) = DRIVER.pieces(policy)
    return piece.resources()


def test_document_lists_the_admitted_callers_of_each_port() -> None:
    """A rule by path admits no caller, because a proxy that cannot inspect requests would admit too many."""
    answer = _document(_policy(POLICY, workload("one")))
    assert answer["identity"] == "spiffe://cluster.local/ns/shop/sa/store"
    assert answer["inbound"] == [
        {
            "address": "10.0.0.1",
            "port": port,
            "application": {"address": "127.0.0.1", "port": port},
            "protocol": protocol,
            "everyone": False,
            "admitted": ["spiffe://cluster.local/ns/shop/sa/store"],
        }
        for port, protocol in ((90, "tcp"), (8080, "http"))
    ]


@pytest.mark.parametrize("config", ["", PERMISSIVE])
def test_port_with_an_external_authorizer_admits_no_caller(config: str) -> None:
    """The authorizer may refuse any request, and a program that reads the document does not ask it."""
    open_ports = _document(_policy(*filter(None, (POLICY, workload("one"), config))))["inbound"]
    document = _document(_policy(*filter(None, (POLICY, workload("one"), config, AUTHORIZED))))
    assert {port["port"] for port in open_ports if port["everyone"] or port["admitted"]} == {90, 8080}
    authorized = [port for port in document["inbound"] if port["port"] == 8080]
    assert [(port["everyone"], port["admitted"]) for port in authorized] == [(False, [])]


def test_transparent_interception_has_no_address_to_bind() -> None:
    """Every Pod is read as transparent, and a program that admits callers chooses its own address."""
    answer = _document(_policy(POLICY, workload("one", explicit=False)))
    assert [(item["address"], item["port"]) for item in answer["inbound"]] == [(None, 90), (None, 8080)]


def test_document_lists_called_services_without_a_split() -> None:
    """Each has its peers and endpoints.

    A split service is left out, instead of sending all calls to one backend.
    """
    assert _document(_policy(POLICY, workload("one")))["outbound"] == []
    unsplit = POLICY[: POLICY.rindex("---")]
    (http, _tcp) = sorted(
        _document(_policy(unsplit, workload("one")))["outbound"], key=lambda item: item["port"]
    )
    assert http == {
        "service": "shop/store",
        "port": 80,
        "protocol": "http",
        "listen": [{"address": "127.0.0.1", "port": 1080}],
        "serverName": "store.shop.svc.cluster.local",
        "peers": ["spiffe://cluster.local/ns/shop/sa/store"],
        "endpoints": [{"address": "10.0.0.1", "port": 8080, "weight": 1}],
    }


def test_headless_service_keeps_its_form_with_endpoints() -> None:
    """The form without endpoints, for calls of one endpoint, does not replace the other form."""
    policy = _policy(POLICY[: POLICY.rindex("---")], workload("one"))
    as_called = tuple(
        replace(service_destination, endpoints=(), as_called=True)
        for service_destination in policy.service_destinations
    )
    both = replace(
        policy,
        reachable=(
            ReachableServices.from_sorted(policy.outbound, (*policy.service_destinations, *as_called)),
        ),
    )
    assert _document(both) == _document(policy)
    assert [len(item["endpoints"]) for item in _document(both)["outbound"]] == [1, 1]


def test_equal_policies_make_equal_documents() -> None:
    """The order of manifests has no effect, and another policy makes another document."""
    one, same = _policy(POLICY, workload("one")), _policy(workload("one"), POLICY)
    assert _made(one) == _made(same)
    assert _made(one) != _made(_policy(workload("one")))


def _snapshot(serial: str = "1") -> Snapshot:
    policy = _policy(workload("one"))
    held = Credentials(a.certificate(policy.identity, serial), TrustDomain("cluster.local"), b"roots")
    return Snapshot.of((*_made(policy), *DRIVER.credentials(held)[0].resources()))


def test_credentials_are_delivered_with_the_document() -> None:
    """Another certificate is another version, and the key is hidden in printed values."""
    snapshot = _snapshot()
    answer = json.loads(contents(snapshot))
    assert answer["credentials"] == {
        "certificateChain": "chain 1",
        "privateKey": "key 1",
        "trustBundle": "roots",
    }
    assert answer["document"] == json.loads(snapshot.resources(DOCUMENT)[NAME].body)
    assert version(snapshot) != version(_snapshot("2"))
    assert version(snapshot) == version(_snapshot())
    assert "key 1" not in repr(snapshot.ordered(CREDENTIALS))


class RecordingObserver(NoObserver):
    """Observer that records its calls."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Record the call."""
        self.said.append(f"opened {node_key} {peer.address} {variant}")

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Record the call."""
        self.said.append(f"sent {response.nonce} {size}")

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Record the call."""
        self.said.append(f"answered {response.nonce} {rejection}")

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Record the call."""
        self.said.append(f"closed {ending}")


def _state(readers: Readers) -> tuple[SyncState, str]:
    (status,) = readers.statuses()
    (document,) = status.types
    return document.state, document.acked_version


def test_reader_is_known_from_its_first_request_until_it_stops_asking() -> None:
    """The reader is in step once it confirms the version.

    It is removed `LINGER_SECONDS` after its last request.
    """
    seen = RecordingObserver()
    readers = Readers(seen, SnapshotCache())
    readers.began(NODE, PEER, 0.0, MOMENT)
    assert _state(readers) == (SyncState.ASKED, "")
    resource = Resource(DOCUMENT, NAME, Version("d"), b"{}")
    readers.record_answer(NODE, "v1", MOMENT, Response(DOCUMENT, Version("d"), Nonce("v1"), (resource,)), 9)
    assert _state(readers) == (SyncState.PENDING, "")
    readers.confirmed(NODE, "of somebody else", "v1")
    assert _state(readers) == (SyncState.PENDING, "")
    readers.confirmed(NODE, "v1", "v2")
    readers.confirmed(NODE, "v1", "v2")
    assert _state(readers) == (SyncState.SYNCED, "v1")
    readers.sweep(LINGER_SECONDS * 2)
    assert len(readers.statuses()) == 1, "it still asks"
    readers.ended(NODE, 1.0)
    readers.sweep(LINGER_SECONDS + 0.5)
    assert len(readers.statuses()) == 1
    readers.sweep(LINGER_SECONDS + 1.5)
    assert readers.statuses() == ()
    assert seen.said == [
        f"opened {NODE} 127.0.0.1:1 sotw",
        "sent v1 9",
        "answered v1 None",
        "closed client",
    ]


def test_simultaneous_requests_are_limited() -> None:
    """There is a limit for each proxy and one for all proxies; without limits, any number is allowed."""
    readers, other = Readers(NoObserver(), SnapshotCache()), NodeKey("two.store.shop")
    bounds = Limits(streams=2, streams_per_certificate=1)
    assert not readers.too_many(NODE, bounds)
    readers.began(NODE, PEER, 0.0, MOMENT)
    assert (readers.too_many(NODE, bounds), readers.too_many(other, bounds)) == (True, False)
    readers.began(other, PEER, 0.0, MOMENT)
    assert readers.too_many(NodeKey("three.store.shop"), bounds)
    assert not readers.too_many(NODE, replace(bounds, streams=None, streams_per_certificate=None))


def _shown(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes:
    """Shake hands in memory, and return the certificate that the client receives."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [one, other]
    while pending:
        for ssl_object in tuple(pending):
            try:
                ssl_object.do_handshake()
            except ssl.SSLWantReadError:
                continue
            pending.remove(ssl_object)
    return one.getpeercert(binary_form=True) or b""


def test_certificates_and_roots_are_renewed_without_a_restart(tmp_path: Path) -> None:
    """Each handshake uses the current certificate and the current roots, and the minimum is TLS 1.2."""
    now = datetime.now(UTC)

    def authority(name: str) -> CertificateAuthority:
        return own_authority(tmp_path / name, TrustDomain("cluster.local"), now)

    def identity(of: CertificateAuthority) -> TlsIdentity:
        names = Names("ads", dns_names=("localhost",))
        pair = issue_pair(of, Usage.SERVER, names, timedelta(hours=1), now)
        return TlsIdentity(pair.chain_pem, pair.key.reveal(), of.trust_bundle())

    def client(of: CertificateAuthority) -> ssl.SSLContext:
        pair = issue_pair(of, Usage.PROXY, Names(NODE), timedelta(hours=1), now)
        file = tmp_path / "client.pem"
        file.write_bytes(pair.key.reveal() + pair.chain_pem)
        context = ssl.create_default_context(cadata=of.trust_bundle().decode())
        context.load_cert_chain(file)
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # a server's refusal is then seen in the handshake
        return context

    old, new = authority("old"), authority("new")
    current = [identity(old)]
    server = server_context(lambda: current[0])
    first = _shown(server, client(old))
    assert _shown(server, client(old)) == first
    current[0] = identity(old)
    assert _shown(server, client(old)) != first
    with pytest.raises(ssl.SSLError):
        _shown(server, client(new))
    current[0] = identity(new)
    assert _shown(server, client(new)) != first
    foreign = client(new)
    foreign.load_verify_locations(cadata=new.trust_bundle().decode())
    current[0] = replace(identity(new), trust_bundle=old.trust_bundle())
    with pytest.raises(ssl.SSLError):
        _shown(server, foreign)
    assert server.minimum_version == ssl.TLSVersion.TLSv1_2


async def test_unknown_document_is_an_error() -> None:
    """A proxy without a snapshot of this driver has no document, and `null` would look like one."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    clients = Clients(AnyNode(NODE), NoObserver(), Limits())
    server = DocumentServer(SimpleNamespace(catalog=cache, clients=clients))  # type: ignore[arg-type]
    result = await server.shown({"proxy": NODE})
    assert result["version"] == version(_snapshot())
    assert await server.shown({}) == {"readers": []}
    with pytest.raises(
        NothingThereError, match=r"the driver does not have a document for proxy 'two\.store\.shop'"
    ):
        await server.shown({"proxy": "two.store.shop"})


async def test_reader_whose_certificate_cannot_be_looked_up_must_try_again() -> None:
    """Another server may have issued the certificate, and the store that both share is away."""

    async def prepare(peer: Peer) -> None:
        raise AuthenticationUnavailable("away")

    clients = Clients(AnyNode(NODE), NoObserver(), Limits(), prepare=prepare)
    server = DocumentServer(SimpleNamespace(catalog=SnapshotCache(), clients=clients))  # type: ignore[arg-type]
    async with TestClient(TestServer(server.application())) as client:
        answer = await client.get(PATH)
        assert (answer.status, await answer.text()) == (
            503,
            '{"error": "this certificate cannot be looked up now: try again later"}',
        )
    assert server.readers.shown() == []


async def _asked(cache: SnapshotCache, method: str = "GET", **headers: str) -> tuple[int, str, bytes, Any]:
    """Send a request as the proxy NODE; return status, ETag, content, and what the server shows of it."""
    clients = Clients(AnyNode(NODE), NoObserver(), Limits())
    server = DocumentServer(SimpleNamespace(catalog=cache, clients=clients))  # type: ignore[arg-type]
    response = {name.replace("_", "-"): value for name, value in headers.items()}
    async with TestClient(TestServer(server.application())) as client:
        answer = await client.request(method, PATH, headers=response)
        (reader,) = server.readers.shown()
        return answer.status, answer.headers.get("ETag", ""), await answer.read(), reader


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ('"{}"', 304),
        ('W/"{}"', 304),
        ('"old", "{}"', 304),
        ('W/"old" ,W/"{}","older"', 304),
        ("*", 304),
        ("{}", 304),  # some clients omit the quotes
        ('"old"', 200),
        ('"old, {}"', 200),
        ('"{}x"', 200),
        ('"*"', 200),  # a tag, because it is quoted
        ("", 200),
    ],
)
async def test_document_is_not_sent_to_a_reader_that_has_it(said: str, status: int) -> None:
    """If-None-Match is a list of entity tags or `*` (RFC 9110, 13.1.2), compared weakly (8.8.3.2)."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    newest = version(_snapshot())
    number, tag, body, reader = await _asked(cache, If_None_Match=said.format(newest))
    assert (number, tag, bool(body)) == (status, f'"{newest}"', status == 200)
    has_it = status == 304 and said != "*"
    assert reader["confirmed"] == (newest if has_it else None)


async def test_head_request_delivers_no_document() -> None:
    """HEAD has the same headers (RFC 9110, 9.3.2), but no confirmation is expected afterwards."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    status, tag, body, reader = await _asked(cache, "HEAD")
    assert (status, tag, body, reader["given"]) == (200, f'"{version(_snapshot())}"', b"", None)
