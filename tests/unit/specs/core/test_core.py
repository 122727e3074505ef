"""Core kinds: Namespace, ServiceAccount, Service, Pod, EndpointSlice and Endpoints."""

from dataclasses import replace

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.objects import EndpointSlice, NamespaceObject
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Health, Workload, WorkloadKey, WorkloadPort
from meshwright.specs.values.protocols import decide
from tests.meshes.reading import complaints, reading, value

NS = Namespace("shop")


def test_namespace_and_service_account() -> None:
    """A Namespace keeps labels and annotations, a ServiceAccount is an identity."""
    meta = "{name: shop, labels: {b: x, a: y}, annotations: {c: z}}"
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {meta}\n"
    assert value(text) == NamespaceObject(NS, (("a", "y"), ("b", "x")), (("c", "z"),))
    text = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cart, namespace: shop}\nsecrets: []"
    assert value(text) == ServiceIdentity(NS, ServiceAccountName("cart"))


def _service(spec: str) -> str:
    return f"apiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: shop}}\nspec: {spec}"


def test_service_with_everything() -> None:
    """Ports are sorted, targetPort may be a number or name, unknown fields are let be."""
    spec = """
  selector: {app: cart, a: b}
  clusterIP: 10.0.0.9
  type: ClusterIP
  sessionAffinity: None
  ports:
  - {port: 9000, targetPort: main, name: tcp-server-first-x, nodePort: 30000}
  - {port: 80, targetPort: 8080, name: web, appProtocol: kubernetes.io/h2c}
"""
    assert value(_service(spec)) == Service(
        ServiceKey(NS, ServiceName("cart")),
        (
            ServicePort(Port(80), Port(8080), Protocol.HTTP, "web", "appProtocol"),
            ServicePort(Port(9000), "main", Protocol.TCP_SERVER_FIRST, "tcp-server-first-x", "name"),
        ),
        (("a", "b"), ("app", "cart")),
        IpAddress("10.0.0.9"),
    )


@pytest.mark.parametrize(
    ("app_protocol", "name", "port", "expected"),
    [
        ("tcp", "http", 3306, (Protocol.TCP, "appProtocol")),
        ("GRPC", "", 80, (Protocol.GRPC, "appProtocol")),
        ("mysql", "", 80, (Protocol.TCP_SERVER_FIRST, "appProtocol")),
        ("unheard-of", "http", 80, (Protocol.TCP, "appProtocol")),
        (None, "http", 3306, (Protocol.HTTP, "name")),
        (None, "grpc-web", 80, (Protocol.GRPC, "name")),
        (None, "tcp-server-first", 80, (Protocol.TCP_SERVER_FIRST, "name")),
        (None, "tcp-x", 80, (Protocol.TCP, "name")),
        (None, "https-x", 80, (Protocol.TCP, "name")),
        (None, "httpx", 80, (Protocol.HTTP, "default")),
        (None, "tcpx", 3306, (Protocol.TCP_SERVER_FIRST, "port")),
        (None, "", 5432, (Protocol.TCP, "port")),
        (None, "", 8080, (Protocol.HTTP, "default")),
    ],
)
def test_protocol_of_a_port(
    app_protocol: str | None, name: str, port: int, expected: tuple[Protocol, str]
) -> None:
    """AppProtocol goes before the name, the name before the number, and HTTP is the default."""
    assert decide(app_protocol, name, Port(port)) == expected


def test_udp_port_is_left_out_and_said() -> None:
    """The other ports of the Service stay in force, the same number by TCP included."""
    text = _service("{ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}")
    found = reading(text)
    assert complaints(text) == [("warning", "MW1023", "spec.ports[0].protocol", '"UDP"')]
    ((_, service),) = found.objects
    assert isinstance(service, Service)
    assert [port.port for port in service.ports] == [53]


@pytest.mark.parametrize("said", ["0", "''", "null"])
def test_a_target_port_that_says_nothing_is_the_port(said: str) -> None:
    """As SetDefaults_Service of Kubernetes has it, of a number and of a name."""
    service = value(_service(f"{{ports: [{{port: 81, targetPort: {said}}}]}}"))
    assert isinstance(service, Service)
    assert [(port.port, port.target_port) for port in service.ports] == [(81, 81)]


def test_a_null_in_a_selector_is_none() -> None:
    """The other labels still select."""
    service = value(_service("{ports: [{port: 80}], selector: {app: web, v: null}}"))
    assert isinstance(service, Service)
    assert service.selector == (("app", "web"),)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{ports: [{port: 0}]}", ("error", "MW1013", "spec.ports[0].port", "0")),
        ("{ports: [{port: '80'}]}", ("error", "MW1010", "spec.ports[0].port", '"80"')),
        ("{ports: [{}]}", ("error", "MW1011", "spec.ports[0].port", "")),
        ("{ports: [{port: 80, targetPort: '80'}]}", ("error", "MW1013", "spec.ports[0].targetPort", '"80"')),
        ("{ports: [{port: 80, targetPort: -1}]}", ("error", "MW1013", "spec.ports[0].targetPort", "-1")),
        (
            "{ports: [{port: 80, targetPort: 70000}]}",
            ("error", "MW1013", "spec.ports[0].targetPort", "70000"),
        ),
        ("{ports: [{port: 80}], selector: []}", ("error", "MW1010", "spec.selector", "a list of 0 items")),
        ("{ports: [{port: 80}], selector: {a: 1}}", ("error", "MW1010", "spec.selector[a]", "1")),
        ("{ports: [{port: 80}], clusterIP: x}", ("error", "MW1013", "spec.clusterIP", '"x"')),
        ("[]", ("error", "MW1010", "spec", "a list of 0 items")),
    ],
)
def test_bad_services_name_their_place(spec: str, expected: tuple[str, str, str, str]) -> None:
    """A wrong field that is used refuses the Service."""
    assert complaints(_service(spec)) == [expected]
    assert reading(_service(spec)).objects == ()


@pytest.mark.parametrize(
    ("spec", "expected", "objects"),
    [
        ("{ports: [{port: 1}, {port: 1}]}", ("error", "MW1015", "spec.ports[1].port", "1"), 1),
        ("{selector: {a: b}}", ("warning", "MW1017", "spec.ports", ""), 1),
        (
            "{ports: [{port: 1, appProtocol: odd}]}",
            ("warning", "MW1019", "spec.ports[0].appProtocol", '"odd"'),
            1,
        ),
        ("{type: ExternalName, externalName: a.b}", ("info", "MW1020", "spec.type", ""), 0),
    ],
)
def test_odd_services_are_in_force_or_not_used(
    spec: str, expected: tuple[str, str, str, str], objects: int
) -> None:
    """What does not hinder is said and does not refuse."""
    assert complaints(_service(spec)) == [expected]
    assert len(reading(_service(spec)).objects) == objects


def _pod(labels: str, rest: str, annotations: str = "{}") -> str:
    head = f"{{name: cart-0, namespace: shop, labels: {labels}, annotations: {annotations}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {head}\n{rest}"


_SPEC = """
spec:
  serviceAccountName: cart
  containers:
  - name: a
    ports: [{containerPort: 8080, name: main}, {containerPort: 53, protocol: UDP}]
  - name: b
"""


def _pod_value(uuid: str | None, service: str, labels: tuple[tuple[str, str], ...]) -> Workload:
    return Workload(
        WorkloadKey(NS, "cart-0"),
        ServiceIdentity(NS, ServiceAccountName("cart")),
        ServiceName(service),
        IpAddress("10.1.0.7"),
        ProxyUuid(uuid) if uuid else None,
        (WorkloadPort(Port(8080), "main"),),
        labels,
        names_service=service != "cart",
    )


def test_pods_become_workloads() -> None:
    """UUID from our label or OSM's, service from the ServiceAccount or our annotation."""
    rest = _SPEC + "status: {podIP: 10.1.0.7, phase: Running, conditions: [{type: Ready, status: 'True'}]}\n"
    assert value(_pod("{osm-proxy-uuid: u1}", rest)) == _pod_value("u1", "cart", (("osm-proxy-uuid", "u1"),))
    both = "{osm-proxy-uuid: u1, meshwright.dev/proxy-uuid: u2}"
    labels = (("meshwright.dev/proxy-uuid", "u2"), ("osm-proxy-uuid", "u1"))
    assert value(_pod(both, rest, "{meshwright.dev/service: till}")) == _pod_value("u2", "till", labels)
    assert value(_pod("{}", rest)) == _pod_value(None, "cart", ())


def test_a_pod_s_own_uid_may_be_its_sidecar_s_uuid() -> None:
    """Who made the Pod did not know it: a template is the same for all its Pods."""
    rest = _SPEC + "status: {podIP: 10.1.0.7, phase: Running, conditions: [{type: Ready, status: 'True'}]}\n"
    uid, label = "1f0f2b1c-5c33-4d0a-9b43-0d3c4c1d2e3f", ("meshwright.dev/proxy-uuid", "metadata.uid")
    written = _pod("{meshwright.dev/proxy-uuid: metadata.uid}", rest)
    with_uid = written.replace("labels:", f"uid: {uid}, labels:", 1)
    assert with_uid != written
    assert value(with_uid) == replace(_pod_value(uid, "cart", (label,)), uid=uid)
    assert complaints(written) == [
        ("error", "MW1013", "metadata.labels[meshwright.dev/proxy-uuid]", '"metadata.uid"')
    ]


def test_a_pod_has_an_identity_of_its_own() -> None:
    """Which one of the same name after it has not."""
    rest = _SPEC + "status: {podIP: 10.1.0.7}\n"
    unready = replace(_pod_value(None, "cart", ()), health=Health.UNREADY)
    assert value(_pod("{}", rest).replace("{name: cart-0", "{uid: 2b2b, name: cart-0")) == replace(
        unready, uid="2b2b"
    )
    assert complaints(_pod("{}", rest).replace("{name: cart-0", "{uid: 2b2b, name: cart-0")) == []


def test_a_pod_says_on_which_node_it_runs() -> None:
    """People are shown it; of what is served nothing is decided by it."""
    rest = _SPEC.replace("containers:", "nodeName: worker-2\n  containers:") + "status: {podIP: 10.1.0.7}\n"
    unready = replace(_pod_value(None, "cart", ()), health=Health.UNREADY)
    assert value(_pod("{}", rest)) == replace(unready, node="worker-2")
    assert complaints(
        _pod(
            "{}", _SPEC.replace("containers:", "nodeName: [1]\n  containers:") + "status: {podIP: 10.1.0.7}\n"
        )
    ) == [("error", "MW1010", "spec.nodeName", "a list of 1 item")]


def test_pods_without_address_wait() -> None:
    """A Pod without IP, or without status, is not used yet, and that is information."""
    expected = [("info", "MW1022", "status.podIP", "")]
    assert complaints(_pod("{}", _SPEC)) == expected
    assert complaints(_pod("{}", "status: {podIP: ''}")) == expected
    assert complaints(_pod("{}", "status: {podIP: 10.0.0.1, phase: Failed}")) == [
        ("info", "MW1020", "status.phase", "")
    ]


def test_bad_pods_name_their_place() -> None:
    """A wrong address or UUID refuses the Pod."""
    assert complaints(_pod("{}", "status: {podIP: 10.0.0}")) == [
        ("error", "MW1013", "status.podIP", '"10.0.0"')
    ]
    assert complaints(_pod("{osm-proxy-uuid: A_B}", "status: {podIP: 10.0.0.1}")) == [
        ("error", "MW1013", "metadata.labels[osm-proxy-uuid]", '"A_B"')
    ]


@pytest.mark.parametrize("name", ["serviceAccountName", "serviceAccount"])
@pytest.mark.parametrize("account", ["a/b", "Cart", "café", "a_b", "-a", "a" * 254])
def test_a_pod_s_account_is_a_name(name: str, account: str) -> None:
    """It becomes part of the SPIFFE ID: a slash there would be another identity."""
    found = complaints(_pod("{}", f"spec: {{{name}: {account}}}\nstatus: {{podIP: 10.0.0.1}}"))
    assert [each[:3] for each in found] == [("error", "MW1013", f"spec.{name}")]


def test_endpoint_slices_and_endpoints() -> None:
    """Addresses sorted, those apart that are not ready; ports by name and number."""
    text = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-x, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
endpoints:
- {addresses: [10.0.0.2], conditions: {ready: true}}
- {addresses: [10.0.0.1]}
- {addresses: [10.0.0.3], conditions: {ready: false}}
ports: [{name: web, port: 8080, protocol: TCP}, {name: dns, port: 53, protocol: UDP}]
"""
    ready, unready = ("10.0.0.1", "10.0.0.2"), ("10.0.0.3",)
    expected = EndpointSlice("cart", NS, "cart-x", ready, (("web", 8080),), unready=unready)
    assert value(text) == expected
    text = """
apiVersion: v1
kind: Endpoints
metadata: {name: cart, namespace: shop}
subsets:
- {addresses: [{ip: 10.0.0.2}], notReadyAddresses: [{ip: 10.0.0.3}], ports: [{port: 80}]}
- {addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}
"""
    assert value(text) == EndpointSlice("cart", NS, "cart", ready, (("", 80),), unready=unready)
    assert complaints(text.replace("10.0.0.1}], ports: [{port: 80", "10.0.0.1}], ports: [{port: 81")) == [
        ("error", "MW1013", "subsets", "a list of 2 items")
    ]
    assert complaints(text.replace("10.0.0.2", "nowhere")) == [
        ("error", "MW1013", "subsets[0].addresses[0]", '"nowhere"')
    ]


_LIFE = """apiVersion: v1
kind: Pod
metadata: {name: cart-1, namespace: shop%s}
spec: {serviceAccountName: cart%s}
status:
  podIP: 10.1.0.7
  podIPs: [{ip: 10.1.0.7}, {ip: 'fd00::7'}]
  conditions: [{type: Initialized, status: 'True'}, {type: Ready, status: '%s'}]
"""


def _living(metadata: str = "", spec: str = "", ready: str = "True") -> Workload:
    found = value(_LIFE % (metadata, spec, ready))
    assert isinstance(found, Workload)
    return found


@pytest.mark.parametrize(
    ("metadata", "ready", "expected"),
    [
        ("", "True", Health.READY),
        ("", "False", Health.UNREADY),
        ("", "Unknown", Health.UNREADY),
        (", deletionTimestamp: '2026-01-01T00:00:00Z'", "True", Health.DRAINING),
        (", deletionTimestamp: '2026-01-01T00:00:00Z'", "False", Health.UNREADY),
    ],
)
def test_a_pods_condition_ready_and_its_deletion_say_whether_it_is_called(
    metadata: str, ready: str, expected: Health
) -> None:
    """One that has no such condition is not called yet, as the EndpointSlice controller has it; see above."""
    assert _living(metadata, ready=ready).health is expected


def test_a_pod_has_all_its_addresses_and_shares_its_nodes() -> None:
    """The second is its own. In its node's network it shares that one's, but for a sidecar of its own."""
    found = _living()
    assert (found.address, found.other_addresses) == ("10.1.0.7", ("fd00::7",))
    assert not found.shares_address
    assert _living(spec=", hostNetwork: true").shares_address
    assert not _living(", labels: {osm-proxy-uuid: u-1}", ", hostNetwork: true").shares_address


def test_ports_of_sidecars_that_run_first_and_stay_are_the_pods() -> None:
    """Of containers that run first and end they are not."""
    spec = (
        ", initContainers: [{name: a, restartPolicy: Always, ports: [{containerPort: 9000, name: side}]}, "
        "{name: b, ports: [{containerPort: 9001}]}], containers: [{ports: [{containerPort: 80}]}]"
    )
    assert _living(spec=spec).ports == (WorkloadPort(Port(80)), WorkloadPort(Port(9000), "side"))


def test_endpoint_slice_says_how_each_address_is() -> None:
    """An address twice is as good as at its best, and in that zone; unknown conditions are ready ones."""
    text = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-x, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv6
endpoints:
- {addresses: ['fd00::1'], zone: b}
- {addresses: ['fd00::2'], conditions: {ready: false, serving: true, terminating: true}, zone: a}
- {addresses: ['fd00::3'], conditions: {ready: false, serving: false, terminating: true}}
- {addresses: ['fd00::4'], conditions: {ready: false, terminating: true}}
- {addresses: ['fd00::5'], conditions: {ready: false, serving: true}}
- {addresses: ['fd00::1'], conditions: {ready: false}, zone: former}
- {addresses: ['fd00::6'], conditions: {ready: true, terminating: true}}
- {addresses: ['fd00::7'], conditions: null, zone: null, targetRef: {kind: Pod, name: x}}
ports: [{name: '', port: 8080, protocol: TCP, appProtocol: null}, {name: none, port: null}]
"""
    assert value(text) == EndpointSlice(
        "cart",
        NS,
        "cart-x",
        ("fd00::1", "fd00::6", "fd00::7"),
        (("", 8080),),
        ("fd00::2",),
        ("fd00::3", "fd00::4", "fd00::5"),
        (("fd00::1", "b"), ("fd00::2", "a")),
    )


def test_endpoints_that_are_not_ready_are_known() -> None:
    """They stand beside those that are, and one in both is ready."""
    text = """
apiVersion: v1
kind: Endpoints
metadata: {name: cart, namespace: shop}
subsets:
- {addresses: [{ip: 10.0.0.1}], notReadyAddresses: [{ip: 10.0.0.2}], ports: [{port: 80}]}
- {notReadyAddresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}
"""
    found = EndpointSlice("cart", NS, "cart", ("10.0.0.1",), (("", 80),), unready=("10.0.0.2",))
    assert value(text) == found


@pytest.mark.parametrize(
    ("spec", "first", "others"),
    [
        ("clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9, 'fd00::9']", "10.0.0.9", ("fd00::9",)),
        ("clusterIP: 'fd00::9', clusterIPs: ['fd00::9', 10.0.0.9]", "fd00::9", ("10.0.0.9",)),
        ("clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9]", "10.0.0.9", ()),
        ("clusterIP: None, clusterIPs: [None]", None, ()),
        ("clusterIP: 10.0.0.9", "10.0.0.9", ()),
    ],
)
def test_a_dual_stack_service_has_both_its_addresses(
    spec: str, first: str | None, others: tuple[str, ...]
) -> None:
    """The first is what `clusterIP` says; a headless one has none."""
    found = value(_service(f"{{{spec}, ports: [{{port: 80}}]}}"))
    assert isinstance(found, Service)
    assert (found.cluster_ip, found.other_addresses) == (first, others)


def test_a_service_publishes_who_is_not_ready_if_it_says_so() -> None:
    """Else it does not."""
    text = "{ports: [{port: 80}], selector: {a: b}%s}"
    said = [value(_service(text % more)) for more in ("", ", publishNotReadyAddresses: true")]
    assert [each.publish_not_ready for each in said if isinstance(each, Service)] == [False, True]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (_LIFE % ("", ", hostNetwork: 7", "True"), "spec.hostNetwork"),
        (
            (_LIFE % ("", "", "True")).replace("[{ip: 10.1.0.7}", "[{ip: 10.1.0}"),
            "status.podIPs[0]",
        ),
        (_service("{ports: [{port: 80}], clusterIP: 10.0.0.9, clusterIPs: [x]}"), "spec.clusterIPs"),
        (_service("{ports: [{port: 80}], publishNotReadyAddresses: maybe}"), "spec.publishNotReadyAddresses"),
    ],
)
def test_wrong_values_of_fields_that_a_cluster_writes_are_named(text: str, field: str) -> None:
    """The object is refused for them."""
    assert [(severity, path) for severity, _, path, _ in complaints(text)] == [("error", field)]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("sessionAffinity: None, internalTrafficPolicy: Cluster, externalIPs: []", ()),
        ("sessionAffinity: ClientIP", (("sessionAffinity", "ClientIP"),)),
        ("internalTrafficPolicy: Local", (("internalTrafficPolicy", "Local"),)),
        ("trafficDistribution: PreferClose", (("trafficDistribution", "PreferClose"),)),
        ("externalIPs: [192.0.2.1, 192.0.2.2]", (("externalIPs", "192.0.2.1, 192.0.2.2"),)),
        ("sessionAffinity: 5, trafficDistribution: {}", ()),
        ("externalTrafficPolicy: Local, loadBalancerIP: 192.0.2.1", ()),
    ],
)
def test_fields_of_kube_proxy_are_kept_where_they_are_not_its_defaults(
    said: str, kept: tuple[tuple[str, str], ...]
) -> None:
    """The API server writes the defaults into every Service, and refuses what is no text."""
    text = _service(f"{{ports: [{{port: 80}}], {said}}}")
    found = value(text)
    assert isinstance(found, Service)
    assert (found.without_effect, complaints(text)) == (kept, [])


@pytest.mark.parametrize(
    ("name", "said", "kept"),
    [
        ("topology-mode", "Auto", True),
        ("topology-aware-hints", "auto", True),
        ("topology-mode", "example.com/own", True),
        ("topology-mode", "Disabled", False),
        ("topology-aware-hints", "disabled", False),
    ],
)
def test_annotations_of_kube_proxy_are_kept_where_they_are_on(name: str, said: str, kept: bool) -> None:
    """By them it prefers near endpoints, without a field of the Service that says so."""
    full = f"service.kubernetes.io/{name}"
    text = _service("{ports: [{port: 80}]}").replace("shop}", f'shop, annotations: {{{full}: "{said}"}}}}')
    found = value(text)
    assert isinstance(found, Service)
    place = ((f"metadata.annotations[{full}]", said),)
    assert (found.without_effect, complaints(text)) == (place if kept else (), [])
