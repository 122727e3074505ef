"""Random gateways for one mesh, each with its class, a proxy, ListenerSets, routes and policies.

The proxies listen at loopback addresses and unused ports. Some gateways have one odd value.
"""

from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.client_traffic import client_policy
from tests.acceptance.gateway_routes import GROUP, HOSTS, KINDS, SERVER_NAMES, route
from tests.acceptance.values import ODD, Dice
from tests.tools.tls_secrets import Authority

if TYPE_CHECKING:
    from tests.acceptance.manifests import Pool

Document = dict[str, Any]

CONTROLLER: Final = "meshwright.dev/gateway-controller"
PROTOCOLS: Final = (
    *("HTTP",) * 6,
    *("TLS",) * 4,
    *("TCP",) * 3,
    "HTTPS",
    "UDP",
    "example.com/custom",
)
ROUTES: Final = {"HTTP": ("HTTPRoute", "HTTPRoute", "GRPCRoute"), "TLS": ("TLSRoute",), "TCP": ("TCPRoute",)}
HOSTNAMES: Final = (*HOSTS, *SERVER_NAMES, "*.shop.example", "a.b.c.d")
ADDRESSES: Final[tuple[Document, ...]] = (
    {"value": "192.0.2.1"},
    {"type": "IPAddress"},
    {"type": "Hostname", "value": "a.b"},
    {"type": "example.com/pool", "value": "any text"},
)
AUTHORITY: Final = Authority().pem
ALT_NAMES: Final[tuple[Document, ...]] = (
    {"type": "Hostname", "hostname": "a.b"},
    {"type": "Hostname", "hostname": "*.shop.example"},
    {"type": "URI", "uri": "spiffe://a/b?c#d é"},
    {"type": "URI", "uri": "x"},
    {"type": "URI", "uri": "a://b"},
)
SELECTORS: Final[tuple[Document, ...]] = (
    {},
    {"matchLabels": {"app": "a"}},
    {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a", ""]}]},
    {"matchExpressions": [{"key": "app", "operator": "Unheard"}]},
)


def gateway(dice: Dice, pool: "Pool") -> list[Document]:
    """Make a gateway with its class, a proxy, some ListenerSets, some routes to these, and some policies."""
    name, class_name = dice.name(), dice.label()
    ports = dice.some(lambda: dice.randint(20000, 29999), 3)
    listeners = _listeners(dice, ports)
    spec: Document = {"gatewayClassName": class_name, "listeners": listeners}
    if dice.odds(2):
        spec["addresses"] = dice.few(ADDRESSES, 3)
    if dice.odds(2):
        spec["infrastructure"] = {"labels": {"team": dice.label()}, "annotations": {"a/b": dice.text()}}
    if dice.odds(3):
        spec["tls"] = _client_certificates(dice, ports)
    if dice.odds(4):
        odd = dice.choice((spec, *listeners))
        odd[dice.choice(sorted(odd))] = dice.choice(ODD)
    parents = [_parent(dice, {"name": name}, listeners) for _ in range(dice.randint(1, 2))]
    sets = [_set(dice, pool, name, ports) for _ in range(dice.choice((0, 0, 1, 2)))]
    if sets:
        spec["allowedListeners"] = {"namespaces": {"from": dice.choice(("All", "All", "Same", "None"))}}
    for found in sets:
        reference = {"group": GROUP, "kind": "ListenerSet", "name": found["metadata"]["name"]}
        parents.append(_parent(dice, reference, found["spec"]["listeners"]))
    return [
        _document("GatewayClass", class_name, {"controllerName": dice.rarely(CONTROLLER, one_in=10)}),
        _document("Gateway", name, spec, pool.home),
        _proxy(dice, pool, name),
        *sets,
        *(_attached(dice, pool, parents) for _ in range(dice.randint(1, 4))),
        *(document for _ in range(dice.choice((0, 1, 2))) for document in _policy(dice, pool)),
        *(client_policy(dice, pool, name, listeners) for _ in range(dice.choice((0, 1, 1, 2)))),
    ]


def _policy(dice: Dice, pool: "Pool") -> list[Document]:
    """Return a BackendTLSPolicy for a Service, perhaps with its ConfigMap."""
    service, authority = dice.choice(pool.services), dice.name()
    target: Document = {"group": "", "kind": "Service", "name": service}
    if dice.odds(3):
        target["sectionName"] = dice.choice(pool.port_names)
    reference = {"group": "", "kind": dice.choice(("ConfigMap", "ConfigMap", "Secret")), "name": authority}
    validation: Document = {"hostname": dice.choice(HOSTS), "caCertificateRefs": [reference]}
    if dice.odds(3):
        validation = {"hostname": "a.b", "wellKnownCACertificates": dice.choice(("System", "a.b/c"))}
    if dice.odds(2):
        validation["subjectAltNames"] = dice.few(ALT_NAMES, 3)
    if dice.odds(8):
        validation[dice.choice(sorted(validation))] = dice.choice(ODD)
    spec = {"targetRefs": [target], "validation": validation}
    bundle = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": authority, "namespace": pool.home},
        "data": {"ca.crt": dice.choice((AUTHORITY, AUTHORITY, AUTHORITY * 2, "", dice.text()))},
    }
    policy = _document("BackendTLSPolicy", dice.name(), spec, pool.home)
    return [policy, bundle] if dice.odds(2) else [policy]


def _document(kind: str, name: str, spec: Document, namespace: str = "") -> Document:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _proxy(dice: Dice, pool: "Pool", name: str) -> Document:
    spec = {
        "address": f"127.{dice.randint(100, 119)}.{dice.randint(0, 255)}.{dice.randint(2, 250)}",
        "serviceAccount": dice.choice(pool.accounts),
        "service": pool.services[0],
        "uuid": "u-edge",
        "gateway": name,
    }
    metadata = {"name": "edge", "namespace": pool.home}
    return {"apiVersion": "meshwright.dev/v1alpha1", "kind": "Workload", "metadata": metadata, "spec": spec}


def _set(dice: Dice, pool: "Pool", gateway: str, ports: tuple[int, ...]) -> Document:
    """Return a ListenerSet with listeners at the ports of its gateway, and so with conflicts."""
    spec: Document = {"parentRef": {"name": gateway}, "listeners": _listeners(dice, ports)}
    return _document("ListenerSet", dice.name(), spec, pool.home)


def _client_certificates(dice: Dice, ports: tuple[int, ...]) -> Document:
    """Return validations of clients, some with the names of missing ConfigMaps, and a client certificate."""

    def validation() -> Document:
        kind = dice.choice(("ConfigMap", "ConfigMap", "Secret"))
        named = [{"group": "", "kind": kind, "name": dice.name()} for _ in range(dice.randint(1, 2))]
        mode = dice.choice(("AllowValidOnly", "AllowInsecureFallback"))
        return dice.choice(({}, {"validation": {"caCertificateRefs": named, "mode": mode}}))

    per_port = [{"port": port, "tls": validation()} for port in dict.fromkeys(dice.few(ports, 2))]
    result: Document = {"frontend": {"default": validation(), "perPort": per_port}}
    return result | ({"backend": {"clientCertificateRef": {"name": dice.name()}}} if dice.odds(2) else {})


def _listeners(dice: Dice, ports: tuple[int, ...]) -> list[Document]:
    """Return listeners at few ports, of which some share a port."""
    return [_listener(dice, f"a{dice.label()[-20:]}.{number}", ports) for number in range(dice.randint(1, 4))]


def _listener(dice: Dice, name: str, ports: tuple[int, ...]) -> Document:
    protocol = dice.choice(PROTOCOLS)
    listener: Document = {"name": name, "port": dice.choice(ports), "protocol": protocol}
    if protocol in ("TLS", "HTTPS"):
        is_passed = protocol == "TLS" and not dice.odds(4)
        terminated = {"mode": "Terminate", "certificateRefs": [{"name": dice.name()}]}
        listener["tls"] = {"mode": "Passthrough"} if is_passed else terminated
    if protocol not in ("TCP", "UDP") and dice.odds(2):
        listener["hostname"] = dice.choice(HOSTNAMES)
    namespaces = {"from": dice.choice(("All", "Same", "Selector")), "selector": dice.choice(SELECTORS)}
    kinds = [{"kind": kind} for kind in dice.few((*KINDS, "OtherRoute"), 3)]
    allowed = dice.choice(({}, {}, {"namespaces": namespaces}, {"kinds": kinds}))
    return listener | ({"allowedRoutes": allowed} if allowed else {})


def _parent(dice: Dice, reference: Document, listeners: list[Document]) -> tuple[Document, str]:
    """Return a reference to a gateway or ListenerSet, and the protocol of the listener that is meant."""
    chosen = dice.choice(listeners)
    parent: Document = {**reference}
    if dice.odds(3):
        parent["sectionName"] = chosen.get("name")
    elif dice.odds(3):
        parent["port"] = chosen.get("port")
    return parent, str(chosen.get("protocol"))


def _attached(dice: Dice, pool: "Pool", parents: list[tuple[Document, str]]) -> Document:
    """Return a route of which the parents are gateways."""
    parent, protocol = dice.choice(parents)
    document = route(dice, pool, ROUTES.get(protocol, KINDS))
    if not dice.odds(4):
        document["metadata"]["namespace"] = pool.home
    document["spec"]["parentRefs"] = [{**parent, "namespace": pool.home}]
    if document["kind"] != "TCPRoute" and dice.odds(3):
        document["spec"]["hostnames"] = dice.few(HOSTNAMES, 3) or ["a.b"]
    return document
