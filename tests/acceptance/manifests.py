"""Random manifests of every kind that is read: a small mesh whose objects name each other, from one seed.

The relevant proxies are Workloads with valid values; all other objects may be odd. Listeners in explicit
interception bind loopback addresses and unused ports, because the tests are not about addresses in use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.acceptance.gateway_routes import route
from tests.acceptance.gateways import gateway
from tests.acceptance.policies import policy
from tests.acceptance.values import HEADERS, ODD, Dice

Document = dict[str, Any]

CIPHERS: Final = (
    *("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    *(
        "AES128-SHA",
        "TLS_AES_128_GCM_SHA256",
        "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    ),
    *(
        "A",
        "",
        "ALL",
        "ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA",
        "-ALL",
        "ecdhe-ecdsa-aes128-gcm-sha256",
        "PSK",
    ),
    *(
        "DES-CBC3-SHA",
        "ECDHE-RSA-AES128-SHA256",
        "ECDHE-PSK-AES128-CBC-SHA",
        "AES256-GCM-SHA384",
        "@STRENGTH",
    ),
)
CURVES: Final = (
    *(
        "X25519",
        "P-256",
        "P-384",
        "P-521",
        "X25519MLKEM768",
        "prime256v1",
        "secp384r1",
        "p-256",
        "X",
        "",
        "P-224",
    ),
    *("MLKEM1024", "X25519Kyber768Draft00", "secp521r1", "P-256:X25519", "x25519"),
)
PERMISSIVE: Final = "meshwright.dev/permissive"
EGRESS: Final = "meshwright.dev/egress-services"
ANNOTATIONS: Final[dict[str, tuple[str, ...]]] = {
    PERMISSIVE: ("true", "false", "yes"),
    EGRESS: ("*/*", "none", "*/a", "default/shop, */*", "", "a/b/c"),
    "meshwright.dev/interception-capture": ("redirect", "tproxy", "none"),
    "meshwright.dev/interception-ipv6": ("true", "false", "1"),
    "meshwright.dev/sidecar-driver": ("envoy", "", "No"),
    "meshwright.dev/service": ("a", "A", "a.b"),
}
WEIGHTS: Final = (0, 0, 1, 1, 50, 100, 2**31, 2**32 - 2, 2**32 - 1, 2**32)
QUANTITIES: Final = (
    "0",
    "1",
    "500m",
    "0.5",
    2,
    1.5,
    "1k",
    "4294M",
    "0.000001",
    "1m",
    "4295M",
    0,
    "1e3",
    "-1",
)
VALIDITIES: Final = ("1s", "24h", "1h30m", "87600h", "1500ms", "1.5h", "0s", "1d", "-1s", "100000h", "")
LOCALITIES: Final = ("", "eu", "eu/a", "eu/a/1", "/", "a/b/c/d", "é/日", "a" * 300, "\0", "\ud800", "a\nb")
DNS: Final = ("db.example.com", "db.example.com:5432", "x_y.z", "1.2.3.4", "é.com", "a..b", "a.b, c.d")


@dataclass(frozen=True)
class Pool:
    """The names in one mesh, by which its objects refer to each other."""

    namespaces: tuple[str, ...]
    services: tuple[str, ...]
    accounts: tuple[str, ...]
    groups: tuple[str, ...]
    routes: tuple[str, ...]
    matches: tuple[str, ...]
    ports: tuple[int, ...]
    port_names: tuple[str, ...]

    explicit: bool

    def port(self, dice: Dice) -> int:
        """Return another port for a listener."""
        return dice.randint(20000, 29999) if self.explicit else dice.port()

    @property
    def home(self) -> str:
        """Return the namespace of the proxies."""
        return self.namespaces[0]


def mesh(dice: Dice) -> list[Document]:
    """Make a mesh."""
    explicit = dice.odds(4)
    pool = Pool(
        namespaces=dice.some(dice.label, 2),
        services=dice.some(dice.label, 3),
        accounts=dice.some(dice.name, 2),
        groups=dice.some(dice.name, 5),
        routes=dice.some(dice.name, 2),
        matches=dice.some(
            lambda: dice.choice(("read", ".*", "a|b", dice.text(), dice.choice(("\0", "\udfff", "a" * 300)))),
            4,
        ),
        ports=dice.some(lambda: _local_port(dice) if explicit else dice.port(), 3),
        port_names=dice.some(dice.label, 2),
        explicit=explicit,
    )
    result = [_server(dice, pool), _client(dice, pool)]
    result += [_service(dice, pool, name) for name in pool.services]
    result += [_group(dice, pool, name) for name in pool.groups]
    result += [_tcp_route(dice, pool, name) for name in pool.routes]
    result += [_target(dice, pool, group) for group in pool.groups]
    result += [_split(dice, pool) for _ in range(dice.randint(0, 2))]
    result += [dice.choice(FURTHER)(dice, pool) for _ in range(dice.randint(1, 4))]
    result += [policy(dice, pool) for _ in range(dice.randint(0, 4))]
    result += [route(dice, pool) for _ in range(dice.choice((0, 0, 1, 3)))]
    return result + (gateway(dice, pool) if dice.odds(2) else [])


def _object(dice: Dice, api: str, kind: str, namespace: str, name: Any, spec: Any = None) -> Document:
    metadata: Document = {
        "name": dice.rarely(name, one_in=60),
        "namespace": dice.rarely(namespace, one_in=60),
        "labels": dice.rarely({"app": dice.choice("ab"), "tier": dice.label()}, lambda: _pairs(dice)),
    }
    if dice.odds(6):
        known = dice.choice(sorted(ANNOTATIONS))
        metadata["annotations"] = {known: dice.rarely(dice.choice(ANNOTATIONS[known]), one_in=10)}
    document: Document = {"apiVersion": api, "kind": kind, "metadata": metadata}
    return document if spec is None else document | {"spec": spec}


def _pairs(dice: Dice) -> Document:
    return {dice.text(): dice.rarely(dice.text(), one_in=3) for _ in range(dice.randint(0, 3))}


def _server(dice: Dice, pool: Pool) -> Document:
    """Make a Workload with a sidecar that every Service of `app: a` selects."""
    document = _plain(dice, pool, "server", "a")
    spec = document["spec"]
    spec["ports"] = [{"port": port, "name": dice.choice(pool.port_names)} for port in pool.ports[:2]]
    if pool.explicit:
        spec |= {"address": _loopback(dice), "applicationAddress": "127.0.0.1"}
    return document


def _client(dice: Dice, pool: Pool) -> Document:
    """Make a Workload with a sidecar that calls."""
    document = _plain(dice, pool, "client", "b")
    spec = document["spec"]
    if dice.odds(4):
        spec["upstreams"] = [
            {
                "service": {"name": dice.choice(pool.services), "namespace": pool.home},
                "port": dice.choice(pool.ports),
                "address": dice.rarely(_loopback(dice), lambda: "::1", 8),
                "localPort": number,
            }
            for number in dice.some(lambda: _local_port(dice), 2)
        ]
    elif dice.odds(3):
        spec["interception"] = {"capture": dice.choice(("redirect", "tproxy")), "ipv6": dice.odds(2)}
    return document


def _plain(dice: Dice, pool: Pool, name: str, app: str) -> Document:
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": pool.home, "labels": {"app": app}},
        "spec": {
            "address": dice.address(),
            "serviceAccount": pool.accounts[0 if app == "a" else -1],
            "service": pool.services[0],
            "uuid": f"u-{name}",
        },
    }


def _loopback(dice: Dice) -> str:
    return f"127.{dice.randint(80, 99)}.{dice.randint(0, 255)}.{dice.randint(2, 250)}"


def _local_port(dice: Dice) -> int:
    return dice.randint(20000, 29999)


def _service(dice: Dice, pool: Pool, name: str) -> Document:
    spec: Document = {
        "ports": [_service_port(dice, pool, port) for port in pool.ports[: dice.randint(1, 3)]],
        "selector": dice.rarely({"app": "a"}, lambda: _pairs(dice)),
    }
    if dice.odds(2):
        spec["clusterIP"] = dice.rarely(dice.choice(("None", dice.address())), dice.bad_address, 12)
    if dice.odds(20):
        spec["type"] = dice.choice(("ClusterIP", "ExternalName", "NodePort", "LoadBalancer"))
    document = _object(dice, "v1", "Service", pool.home, name, spec)
    if dice.odds(8):
        document["metadata"]["annotations"] = {"meshwright.dev/dns": dice.rarely(dice.choice(DNS))}
    return document


def _service_port(dice: Dice, pool: Pool, number: int) -> Document:
    port: Document = {"port": dice.rarely(number, one_in=40)}
    if dice.odds(2):
        good = dice.choice((dice.choice(pool.ports), dice.choice(pool.port_names), pool.port(dice)))
        port["targetPort"] = dice.rarely(good)
    if dice.odds(2):
        port["name"] = dice.rarely(dice.choice(("http", "tcp-db", "grpc", "https", "", *pool.port_names)))
    if not dice.odds(4):
        port["appProtocol"] = dice.choice(
            ("http", "http", "http", "grpc", "tcp", "tcp-server-first", "TLS", "é")
        )
    if dice.odds(12):
        port["protocol"] = dice.choice(("TCP", "UDP", "SCTP", "X"))
    return port


def _group(dice: Dice, pool: Pool, name: str) -> Document:
    """Make an HTTPRouteGroup with at most one odd value, because one wrong value invalidates the object."""
    version = dice.choice(("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4", "v1alpha4"))
    matches = [_match(dice, match) for match in pool.matches]
    if not dice.odds(4):
        dice.choice((_odd_path, _odd_path, _odd_header, _odd_header, _odd_name))(dice, dice.choice(matches))
    api = f"specs.smi-spec.io/{version}"
    if version in ("v1alpha1", "v1alpha2"):
        return _object(dice, api, "HTTPRouteGroup", pool.home, name) | {"matches": matches}
    return _object(dice, api, "HTTPRouteGroup", pool.home, name, {"matches": matches})


def _match(dice: Dice, name: str) -> Document:
    match: Document = {"name": name}
    if dice.odds(2):
        match["pathRegex"] = dice.choice((".*", "/books(/[0-9]+)?", "/a.b"))
    if dice.odds(2):
        match["methods"] = dice.few(("GET", "POST", "*", "CONNECT", "OPTIONS"), 3)
    if dice.odds(2):
        match["headers"] = {dice.choice(HEADERS): dice.choice((".*", "a|b"))}
    return match


def _odd_path(dice: Dice, match: Document) -> None:
    match["pathRegex"] = dice.rarely(dice.expression())


def _odd_header(dice: Dice, match: Document) -> None:
    headers = {item: dice.rarely(dice.expression()) for item in dice.some(dice.header_name, 2)}
    match["headers"] = headers if dice.odds(2) else [headers]


def _odd_name(dice: Dice, match: Document) -> None:
    match["name"] = dice.choice(ODD)
    match["methods"] = [dice.choice(("get", "", 7, "GET ", "GET"))]


def _tcp_route(dice: Dice, pool: Pool, name: str) -> Document:
    version = dice.choice(("v1alpha1", "v1alpha3", "v1alpha4", "v1alpha4"))
    spec: Any = {"matches": {"ports": dice.rarely(dice.few(pool.ports, 2))}}
    spec = {"v1alpha1": None, "v1alpha3": {}}.get(version, spec)
    return _object(dice, f"specs.smi-spec.io/{version}", "TCPRoute", pool.home, name, spec)


def _target(dice: Dice, pool: Pool, group: str) -> Document:
    """Make a TrafficTarget, most often from the client to the server."""
    rules: list[Document] = []
    if not dice.odds(5):
        rules.append({"kind": "HTTPRouteGroup", "name": group})
        if dice.odds(3):
            rules[0]["matches"] = dice.few((*pool.matches, "gone"), 3)
    if not rules or dice.odds(5):
        rules.append({"kind": "TCPRoute", "name": dice.choice(pool.routes)})
    version = dice.choice(("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha3", "v1alpha3"))
    spec: Document = {
        "destination": _account_of(dice, pool, pool.accounts[0]),
        "sources": [_account_of(dice, pool, account) for account in pool.accounts],
        "specs" if version == "v1alpha1" else "rules": rules,
    }
    if version != "v1alpha3" and dice.odds(5):
        spec["destination"]["port"] = dice.choice((*pool.ports, "80", 0))
    api = f"access.smi-spec.io/{version}"
    if version == "v1alpha1":
        return _object(dice, api, "TrafficTarget", pool.home, dice.name()) | spec
    return _object(dice, api, "TrafficTarget", pool.home, dice.name(), spec)


def _account_of(dice: Dice, pool: Pool, name: str) -> Document:
    result: Document = {"kind": "ServiceAccount", "name": dice.rarely(name)}
    if dice.odds(2):
        result["namespace"] = dice.rarely(pool.home, lambda: dice.choice(pool.namespaces), 10)
    return result


def _split(dice: Dice, pool: Pool) -> Document:
    version = dice.choice(("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4", "v1alpha4"))
    weights: tuple[Any, ...] = QUANTITIES if version == "v1alpha1" else WEIGHTS
    backends = [
        {"service": item, "weight": dice.rarely(dice.choice(weights))}
        for item in dice.sample(pool.services, dice.randint(1, len(pool.services)))
    ]
    spec: Document = {"service": dice.rarely(dice.choice(pool.services)), "backends": backends}
    if version in ("v1alpha3", "v1alpha4") and dice.odds(2):
        spec["matches"] = [{"kind": "HTTPRouteGroup", "name": item} for item in dice.few(pool.groups, 2)]
    api = f"split.smi-spec.io/{version}"
    result = _object(dice, api, "TrafficSplit", pool.home, dice.name(), spec)
    created = dice.choice(("2024-06-01T12:00:00Z", "2023-01-01T00:00:00Z"))
    result["metadata"]["creationTimestamp"] = dice.rarely(created)
    return result


def _workload(dice: Dice, pool: Pool) -> Document:
    """Make a Workload any value of which may be odd."""
    good = {
        "address": dice.rarely(dice.address(), dice.bad_address, 10),
        "serviceAccount": dice.choice(pool.accounts),
        "service": dice.choice(pool.services),
        "uuid": dice.label(),
        "locality": dice.choice(LOCALITIES),
        "weight": dice.choice((1, 2, 1000)),
        "ports": [{"port": dice.choice(pool.ports), "name": dice.choice(pool.port_names)}],
    }
    spec = {name: dice.rarely(item) for name, item in good.items() if name == "address" or not dice.odds(6)}
    namespace = dice.choice(pool.namespaces)
    return _object(dice, "meshwright.dev/v1alpha1", "Workload", namespace, dice.name(), spec)


def _pod(dice: Dice, pool: Pool) -> Document:
    port = {
        "containerPort": dice.rarely(dice.choice(pool.ports)),
        "name": dice.rarely(dice.choice(pool.port_names), one_in=10),
    }
    account = dice.rarely(dice.choice(pool.accounts), one_in=4)
    spec = {"serviceAccountName": account, "containers": [{"name": "c", "ports": [port]}]}
    result = _object(dice, "v1", "Pod", pool.home, dice.name(), spec)
    if isinstance(result["metadata"]["labels"], dict) and not dice.odds(3):
        result["metadata"]["labels"]["osm-proxy-uuid"] = dice.rarely(dice.label(), one_in=10)
    return result | {"status": {"podIP": dice.rarely(dice.address(), dice.bad_address, 10)}}


def _slice(dice: Dice, pool: Pool) -> Document:
    result = _object(dice, "discovery.k8s.io/v1", "EndpointSlice", pool.home, dice.name())
    result["metadata"]["labels"] = {"kubernetes.io/service-name": dice.rarely(dice.choice(pool.services))}
    addresses = [dice.rarely(dice.address(), dice.bad_address, 15) for _ in range(dice.randint(1, 3))]
    return result | {
        "addressType": dice.choice(("IPv4", "IPv6")),
        "endpoints": [{"addresses": addresses, "conditions": {"ready": not dice.odds(4)}}],
        "ports": [{"name": dice.choice(("", *pool.port_names)), "port": dice.choice(pool.ports)}],
    }


def _endpoints(dice: Dice, pool: Pool) -> Document:
    result = _object(dice, "v1", "Endpoints", pool.home, dice.choice(pool.services))
    address = dice.rarely(dice.address(), dice.bad_address, 10)
    return result | {
        "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": dice.choice(pool.ports)}]}]
    }


def _namespace(dice: Dice, pool: Pool) -> Document:
    result = _object(dice, "v1", "Namespace", "", dice.choice(pool.namespaces))
    del result["metadata"]["namespace"]
    known = dice.choice((PERMISSIVE, EGRESS))
    result["metadata"]["annotations"] = {known: dice.rarely(dice.choice(ANNOTATIONS[known]))}
    return result


def _account(dice: Dice, pool: Pool) -> Document:
    return _object(dice, "v1", "ServiceAccount", pool.home, dice.choice(pool.accounts))


def _config(dice: Dice, pool: Pool) -> Document:
    del pool
    versions = ("TLSv1_2", "TLSv1_3", "TLS_AUTO", "")
    sidecar: Document = {
        "tlsMinProtocolVersion": dice.rarely(dice.choice(versions)),
        "tlsMaxProtocolVersion": dice.rarely(dice.choice(versions)),
        "maxDataPlaneConnections": dice.choice((0, 1, 2**31 - 1, -1)),
    }
    for name, known in (("cipherSuites", CIPHERS), ("ecdhCurves", CURVES)):
        if dice.odds(2):
            sidecar[name] = dice.few(known[:3] if dice.odds(2) else known, 2)
    spec = {
        "sidecar": {name: value for name, value in sidecar.items() if not dice.odds(2)},
        "traffic": {
            "enableEgress": dice.odds(2),
            "enablePermissiveTrafficPolicyMode": dice.rarely(dice.odds(2)),
            "outboundIPRangeExclusionList": dice.rarely(["10.0.0.0/8"], lambda: ["10.0.0.1/8"]),
        },
        "certificate": {"serviceCertValidityDuration": dice.choice(VALIDITIES[: dice.choice((6, 11))])},
    }
    api = f"config.openservicemesh.io/{dice.choice(('v1alpha1', 'v1alpha2'))}"
    return _object(dice, api, "MeshConfig", "osm-system", "osm-mesh-config", spec)


FURTHER: Final[tuple[Callable[[Dice, Pool], Document], ...]] = (
    *(_workload, _pod, _slice, _endpoints, _namespace, _account, _config, _config),
)
