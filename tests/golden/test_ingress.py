"""Tests of IngressBackends with a real Envoy, compared with the oracle for each form.

Callers are outside the mesh: they have no sidecar, and call from chosen loopback addresses.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from catalog.oracle.decide import Request, decide
from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.service import ServiceKey
from tests.golden.running_mesh import LiveMesh, serve
from tests.tools.own_authority import own_authority

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
SERVER, NEAR, FAR, GATEWAY = f"{NET}.1", f"{NET}.11", f"{NET}.12", f"{NET}.13"
PORT: Final = 8080
SHOP: Final = ServiceKey(Namespace("default"), ServiceName("shop"))
FQDN: Final = "shop.default.svc.cluster.local"
NAME: Final = "gateway.example.org"
URI: Final = "spiffe://cluster.local/ns/ingress/sa/gateway"
STRANGER: Final = "other.example.org"
MESH: Final = f"""
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec:
  selector: {{app: shop}}
  ports: [{{name: web, port: 80, targetPort: {PORT}, appProtocol: http}}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: shop, namespace: default, labels: {{app: shop}}}}
spec: {{address: {SERVER}, applicationAddress: {NET}.2, serviceAccount: shop, uuid: shop-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: alice, namespace: default}}
spec: {{address: {NET}.3, serviceAccount: alice, uuid: alice-uuid}}
---
apiVersion: v1
kind: Service
metadata: {{name: gateway, namespace: ingress}}
spec: {{ports: [{{name: web, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: gateway-1, namespace: ingress, labels: {{kubernetes.io/service-name: gateway}}}}
addressType: IPv4
endpoints: [{{addresses: ["{GATEWAY}"]}}]
ports: [{{name: web, port: 8000}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: books, namespace: default}}
spec: {{matches: [{{name: books, pathRegex: /books, methods: [GET]}}]}}
"""
PERMISSIVE: Final = """
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {traffic: {enablePermissiveTrafficPolicyMode: true}}
"""
RANGE: Final = f"{{kind: IPRange, name: {NEAR}/32}}"
SERVICE: Final = "{kind: Service, name: gateway, namespace: ingress}"


def principal(name: str) -> str:
    """Return a source that is a name in a certificate."""
    return f"{{kind: AuthenticatedPrincipal, name: '{name}'}}"


def ingress(protocol: str, *sources: str, tls: str = "{}", matches: bool = False, name: str = "in") -> str:
    """Return an IngressBackend for the shop."""
    named = "[{apiGroup: specs.smi-spec.io/v1alpha4, kind: HTTPRouteGroup, name: books}]"
    return f"""
---
apiVersion: policy.openservicemesh.io/v1alpha1
kind: IngressBackend
metadata: {{name: {name}, namespace: default}}
spec:
  backends: [{{name: shop, port: {{number: {PORT}, protocol: {protocol}}}, tls: {tls}}}]
  sources: [{", ".join(sources)}]
  matches: {named if matches else "[]"}
"""


SKIP: Final = "{skipClientCertValidation: true}"
CASES: Final = {
    "nobody": "",
    "http from a range": ingress("http", RANGE),
    "http from a Service": ingress("http", SERVICE),
    "http from both, some requests": ingress("HTTP", SERVICE, RANGE, matches=True),
    "a name, from anywhere": ingress("https", principal(NAME)),
    "a URI of the mesh's own": ingress("https", principal(URI)),
    "a name, from a Service": ingress("https", SERVICE, principal(NAME)),
    "names, from a range, some requests": ingress(
        "https", RANGE, principal(NAME), principal(URI), matches=True
    ),
    "a name, asking for a server": ingress("https", principal(NAME), tls="{sniHosts: [Shop.example.org]}"),
    "no certificate": ingress("https", RANGE, tls=SKIP),
    "no certificate, a name that is not looked at": ingress("https", SERVICE, principal(STRANGER), tls=SKIP),
    "no certificate, asking for servers": ingress(
        "https",
        RANGE,
        tls="{skipClientCertValidation: true, sniHosts: [shop.example.org, '*.svc.cluster.local']}",
    ),
    "no certificate, some requests": ingress("https", RANGE, SERVICE, tls=SKIP, matches=True),
}
"""What the shop is opened by."""


async def _application(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A shop behind an Envoy."""
    async with AsyncExitStack() as ends:
        await serve(ends, f"{NET}.2", PORT, _application)
        live_mesh = await LiveMesh.start(tmp_path_factory.mktemp("ingress"), MESH, ends)
        await live_mesh.envoy("shop-uuid")
        yield live_mesh


async def asked(
    address: str, path: str, tls: ssl.SSLContext | None = None, server_name: str = "", header: str = ""
) -> int | None:
    """Return the status of a request from an address, or None if the connection is closed."""
    try:
        reader, writer = await asyncio.open_connection(
            SERVER, PORT, local_addr=(address, 0), ssl=tls, server_hostname=server_name if tls else None
        )
        writer.write(f"GET {path} HTTP/1.1\r\nhost: shop\r\n{header}connection: close\r\n\r\n".encode())
        await writer.drain()
        status = await asyncio.wait_for(reader.readline(), 20)
        writer.close()
    except (ConnectionError, ssl.SSLError):
        return None
    return int(status.split()[1]) if status else None


class Shown:
    """TLS clients by the name in their certificate; "" has none, "foreign" one with an unknown root."""

    def __init__(self, mesh: LiveMesh, state: Path) -> None:
        self._mesh, self._state = mesh, state
        self._made: dict[str, ssl.SSLContext] = {}

    def __call__(self, name: str) -> ssl.SSLContext:
        """Return the client with a name."""
        if name not in self._made:
            self._made[name] = self._client(name)
        return self._made[name]

    def _client(self, name: str) -> ssl.SSLContext:
        authority = self._mesh.authority
        context = ssl.create_default_context(cadata=authority.trust_bundle().decode())
        context.check_hostname = False
        if name == "foreign":
            (self._state / "foreign").mkdir(exist_ok=True)
            authority = own_authority(self._state / "foreign", authority.trust_domain, datetime.now(UTC))
        if name:
            uris = (name,) if "://" in name else ()
            names = Names("gateway", dns_names=() if uris else (name,), **({"uris": uris} if uris else {}))
            pair = issue_pair(authority, Usage.SERVICE, names, timedelta(hours=1), datetime.now(UTC))
            file = self._state / f"{len(self._made)}.pem"
            file.write_bytes(pair.chain_pem + pair.key.reveal())
            context.load_cert_chain(file)
        return context


@pytest.fixture(scope="module")
def shown(mesh: LiveMesh, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """TLS clients outside the mesh."""
    return Shown(mesh, tmp_path_factory.mktemp("clients"))


CLIENTS: Final = tuple(
    Outsider(IpAddress(address), name, tls, server)
    for address in (NEAR, FAR, GATEWAY)
    for name, tls, server in (
        ("", False, ""),
        ("", True, ""),
        ("", True, FQDN),
        ("", True, "shop.example.org"),
        (NAME, True, ""),
        (NAME, True, FQDN),
        (NAME, True, "shop.example.org"),
        (URI, True, ""),
        (STRANGER, True, FQDN),
    )
)


@pytest.mark.parametrize("permissive", [False, True], ids=["policy", "permissive"])
@pytest.mark.parametrize("case", CASES)
async def test_envoy_and_oracle_admit_the_same_external_callers(
    mesh: LiveMesh, shown: Shown, case: str, permissive: bool
) -> None:
    """Every client is tried from every address, in plain text and TLS, for two paths."""
    mesh.apply(MESH + CASES[case] + (PERMISSIVE if permissive else ""))
    await mesh.in_force()
    differing, admitted = [], 0
    for client in CLIENTS:
        for path in ("/books", "/other"):
            request = Request(client, SHOP, Port(80), path=path, headers=(("host", "shop"),))
            tls = shown(client.name) if client.is_encrypted else None
            status = await asked(client.address, path, tls, client.server_name)
            assert status in (200, 403, None)
            admitted += status == 200
            if (status == 200) != decide(mesh.view, request).allowed:
                differing.append(f"{client} {path}: {status}")
    assert differing == []
    assert bool(admitted) == (case != "nobody" or permissive)


async def test_skipped_client_validation_ignores_foreign_certificates(mesh: LiveMesh, shown: Shown) -> None:
    """A certificate with an unknown root is accepted like none, because Envoy does not request one."""
    mesh.apply(MESH + ingress("https", RANGE, tls=SKIP))
    await mesh.in_force()
    result = [await asked(NEAR, "/", shown("foreign"), name) for name in ("", "shop.example.org")]
    assert result == [200, 200]
    assert await asked(FAR, "/", shown("foreign")) is None


TARGET: Final = """
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: alice, namespace: default}
spec:
  destination: {kind: ServiceAccount, name: shop, namespace: default}
  sources: [{kind: ServiceAccount, name: alice, namespace: default}]
  rules: [{kind: HTTPRouteGroup, name: books}]
"""


@pytest.mark.parametrize("protocol", ["http", "https"])
async def test_mesh_callers_are_judged_by_identity_within_an_ingress_source(
    mesh: LiveMesh, protocol: str
) -> None:
    """Their rights are neither wider nor narrower than elsewhere.

    Their sidecars use the service's TLS server name.
    """
    mesh.apply(MESH + TARGET + ingress(protocol, RANGE, tls=SKIP if protocol == "https" else "{}"))
    await mesh.in_force()
    alice, nobody = (mesh.client("default", name) for name in ("alice", "shop"))
    for address in (NEAR, FAR):
        result = [await asked(address, path, alice, FQDN) for path in ("/books", "/other")]
        assert result == [200, 403]
        assert await asked(address, "/books", nobody, FQDN) == 403


async def test_request_headers_do_not_change_the_callers_address_or_identity(mesh: LiveMesh) -> None:
    """Neither X-Forwarded-For nor Envoy's own headers open anything."""
    mesh.apply(MESH + ingress("http", RANGE, matches=True))
    await mesh.in_force()
    for header in (
        f"x-forwarded-for: {NEAR}",
        "x-envoy-internal: true",
        "x-envoy-original-path: /books",
        f"x-envoy-external-address: {NEAR}",
        "x-forwarded-client-cert: URI=spiffe://cluster.local/ns/default/sa/alice",
    ):
        assert await asked(FAR, "/books", header=f"{header}\r\n") is None
        assert await asked(NEAR, "/other", header=f"{header}\r\n") == 403
        assert await asked(NEAR, "/books", header=f"{header}\r\n") == 200


async def test_older_of_two_ingress_backends_applies(mesh: LiveMesh) -> None:
    """This is for the same service and port. When the older is deleted, the other one applies."""
    older, newer = ingress("http", RANGE, name="z"), ingress("http", f"{{kind: IPRange, name: {FAR}/32}}")
    dated = older.replace("{name: z,", '{name: z, creationTimestamp: "2026-01-01T00:00:00Z",')
    for manifests, expected in (
        (older + newer, [None, 200]),
        (dated + newer, [200, None]),
        (newer, [None, 200]),
        ("", [None, None]),
    ):
        mesh.apply(MESH + manifests)
        await mesh.in_force()
        assert [await asked(item, "/") for item in (NEAR, FAR)] == expected


async def test_envoy_has_no_complaints_about_ingress(mesh: LiveMesh) -> None:
    """There was no rejection, no warning and no deprecated field in the tests above."""
    assert await mesh.complaints() == ""
