"""The document: what it says of a policy, what it leaves out, and who reads it."""

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
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, NoObserver, Peer, StreamEnd
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


def test_who_may_connect_stands_in_it() -> None:
    """A rule by path admits nobody: a proxy that cannot look at requests would let more pass."""
    said = _document(_policy(POLICY, workload("one")))
    assert said["identity"] == "spiffe://cluster.local/ns/shop/sa/store"
    assert said["inbound"] == [
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
def test_a_port_with_an_external_authorizer_admits_no_caller(config: str) -> None:
    """The authorizer may refuse any request, and a program that reads the document does not ask it."""
    open_ports = _document(_policy(*filter(None, (POLICY, workload("one"), config))))["inbound"]
    document = _document(_policy(*filter(None, (POLICY, workload("one"), config, AUTHORIZED))))
    assert {port["port"] for port in open_ports if port["everyone"] or port["admitted"]} == {90, 8080}
    authorized = [port for port in document["inbound"] if port["port"] == 8080]
    assert [(port["everyone"], port["admitted"]) for port in authorized] == [(False, [])]


def test_without_an_address_of_its_own_there_is_none_to_bind() -> None:
    """In transparent interception, as every Pod is read: a program that admits callers listens by itself."""
    said = _document(_policy(POLICY, workload("one", explicit=False)))
    assert [(each["address"], each["port"]) for each in said["inbound"]] == [(None, 90), (None, 8080)]


def test_where_services_are_stands_in_it_unless_they_are_split() -> None:
    """With who may answer there; a split service is left out, not sent to one of its backends."""
    assert _document(_policy(POLICY, workload("one")))["outbound"] == []
    unsplit = POLICY[: POLICY.rindex("---")]
    (http, _tcp) = sorted(
        _document(_policy(unsplit, workload("one")))["outbound"], key=lambda each: each["port"]
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


def test_a_headless_service_in_both_forms_keeps_the_one_with_endpoints() -> None:
    """Its form without endpoints, for those who call one of them, does not take the other's place."""
    policy = _policy(POLICY[: POLICY.rindex("---")], workload("one"))
    as_called = tuple(replace(each, endpoints=(), as_called=True) for each in policy.service_destinations)
    both = replace(
        policy, reachable=(ReachableServices.of(policy.outbound, (*policy.service_destinations, *as_called)),)
    )
    assert _document(both) == _document(policy)
    assert [len(each["endpoints"]) for each in _document(both)["outbound"]] == [1, 1]


def test_equal_policies_make_equal_documents() -> None:
    """Whatever order the manifests are in; another policy is another version."""
    one, same = _policy(POLICY, workload("one")), _policy(workload("one"), POLICY)
    assert _made(one) == _made(same)
    assert _made(one) != _made(_policy(workload("one")))


def _snapshot(serial: str = "1") -> Snapshot:
    policy = _policy(workload("one"))
    held = Credentials(a.certificate(policy.identity, serial), TrustDomain("cluster.local"), b"roots")
    return Snapshot.of((*_made(policy), *DRIVER.credentials(held)[0].resources()))


def test_a_reader_is_given_its_credentials_beside() -> None:
    """Another certificate is another version; no key shows where values are printed."""
    snapshot = _snapshot()
    said = json.loads(contents(snapshot))
    assert said["credentials"] == {
        "certificateChain": "chain 1",
        "privateKey": "key 1",
        "trustBundle": "roots",
    }
    assert said["document"] == json.loads(snapshot.resources(DOCUMENT)[NAME].body)
    assert version(snapshot) != version(_snapshot("2"))
    assert version(snapshot) == version(_snapshot())
    assert "key 1" not in repr(snapshot.ordered(CREDENTIALS))


class Seen(NoObserver):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Remember it."""
        self.said.append(f"opened {node_key} {peer.address} {variant}")

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Remember it."""
        self.said.append(f"sent {response.nonce} {size}")

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Remember it."""
        self.said.append(f"answered {response.nonce} {rejection}")

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Remember it."""
        self.said.append(f"closed {ending}")


def _state(readers: Readers) -> tuple[SyncState, str]:
    (status,) = readers.statuses()
    (document,) = status.types
    return document.state, document.acked_version


def test_the_life_of_a_reader() -> None:
    """It comes with its first request, is in step when it says so, and goes when it asks no more."""
    seen = Seen()
    readers = Readers(seen, SnapshotCache())
    readers.began(NODE, PEER, 0.0, MOMENT)
    assert _state(readers) == (SyncState.ASKED, "")
    resource = Resource(DOCUMENT, NAME, Version("d"), b"{}")
    readers.given(NODE, "v1", MOMENT, Response(DOCUMENT, Version("d"), Nonce("v1"), (resource,)), 9)
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


def test_requests_at_once_are_bounded() -> None:
    """Of one proxy, and of all; without bounds there are none."""
    readers, other = Readers(NoObserver(), SnapshotCache()), NodeKey("two.store.shop")
    bounds = Limits(streams=2, streams_per_certificate=1)
    assert not readers.too_many(NODE, bounds)
    readers.began(NODE, PEER, 0.0, MOMENT)
    assert (readers.too_many(NODE, bounds), readers.too_many(other, bounds)) == (True, False)
    readers.began(other, PEER, 0.0, MOMENT)
    assert readers.too_many(NodeKey("three.store.shop"), bounds)
    assert not readers.too_many(NODE, replace(bounds, streams=None, streams_per_certificate=None))


def _shown(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes:
    """Shake hands in memory, and return the certificate that the client is shown."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [one, other]
    while pending:
        for each in tuple(pending):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
            pending.remove(each)
    return one.getpeercert(binary_form=True) or b""


def test_certificates_and_roots_are_renewed_without_a_restart(tmp_path: Path) -> None:
    """What is shown, and who is trusted, is asked for at each handshake; TLS 1.1 is not spoken."""
    now = datetime.now(UTC)

    def authority(name: str) -> CertificateAuthority:
        return CertificateAuthority.open(tmp_path / name, TrustDomain("cluster.local"), now)

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


async def test_whose_document_there_is_not_is_said() -> None:
    """Not a document that is null: of nobody there is none, nor of a proxy of another driver."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    clients = Clients(AnyNode(NODE), NoObserver(), Limits())
    server = DocumentServer(SimpleNamespace(catalog=cache, clients=clients))  # type: ignore[arg-type]
    found = await server.shown({"proxy": NODE})
    assert found["version"] == version(_snapshot())
    assert await server.shown({}) == {"readers": []}
    with pytest.raises(NothingThereError, match=r"the driver has no document for proxy 'two\.store\.shop'"):
        await server.shown({"proxy": "two.store.shop"})


async def _asked(cache: SnapshotCache, method: str = "GET", **headers: str) -> tuple[int, str, bytes, Any]:
    """Ask a server, as the proxy NODE; return its status, ETag and content, and what was shown of it then."""
    clients = Clients(AnyNode(NODE), NoObserver(), Limits())
    server = DocumentServer(SimpleNamespace(catalog=cache, clients=clients))  # type: ignore[arg-type]
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    async with TestClient(TestServer(server.application())) as client:
        answer = await client.request(method, PATH, headers=said)
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
        ("{}", 304),  # as those have it that leave the quotes away
        ('"old"', 200),
        ('"old, {}"', 200),
        ('"{}x"', 200),
        ('"*"', 200),  # which is a tag
        ("", 200),
    ],
)
async def test_a_document_is_not_sent_to_who_has_it(said: str, status: int) -> None:
    """If-None-Match is a list of entity tags, or any (RFC 9110, 13.1.2), compared weakly (8.8.3.2)."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    newest = version(_snapshot())
    found, tag, body, reader = await _asked(cache, If_None_Match=said.format(newest))
    assert (found, tag, bool(body)) == (status, f'"{newest}"', status == 200)
    has_it = status == 304 and said != "*"
    assert reader["confirmed"] == (newest if has_it else None)


async def test_head_gives_nobody_a_document() -> None:
    """The same headers (RFC 9110, 9.3.2): it is not waited for that somebody says that it has it."""
    cache = SnapshotCache()
    cache.publish({GroupKey("g"): _snapshot()}, {NODE: GroupKey("g")})
    status, tag, body, reader = await _asked(cache, "HEAD")
    assert (status, tag, body, reader["given"]) == (200, f'"{version(_snapshot())}"', b"", None)
