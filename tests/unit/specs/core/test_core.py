"""Tests of the core kinds: Namespace, ServiceAccount, Service, Pod, EndpointSlice and Endpoints."""

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


def test_namespace_and_service_account_are_read() -> None:
    """A Namespace keeps its labels and annotations, and a ServiceAccount is an identity."""
    meta = "{name: shop, labels: {b: x, a: y}, annotations: {c: z}}"
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {meta}\n"
    assert value(text) == NamespaceObject(NS, (("a", "y"), ("b", "x")), (("c", "z"),))
    text = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cart, namespace: shop}\nsecrets: []"
    assert value(text) == ServiceIdentity(NS, ServiceAccountName("cart"))


def _service(spec: str) -> str:
    return f"apiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: shop}}\nspec: {spec}"


def test_service_with_all_fields_is_read() -> None:
    """Ports are sorted, targetPort may be a number or a name, and unused fields are ignored."""
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
            ServicePort(Port(80), Port(8080), Protocol.HTTP, "web", "appProtocol", http2=True),
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
def test_protocol_of_a_port_follows_from_app_protocol_name_or_number(
    app_protocol: str | None, name: str, port: int, expected: tuple[Protocol, str]
) -> None:
    """The order of precedence is appProtocol, name, number; HTTP is the default."""
    assert decide(app_protocol, name, Port(port)) == expected


def test_udp_port_is_left_out_with_a_warning() -> None:
    """The other ports of the Service are in force, even a TCP port with the same number."""
    text = _service("{ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}")
    manifest_reading = reading(text)
    assert complaints(text) == [("warning", "MW1023", "spec.ports[0].protocol", '"UDP"')]
    ((_, service),) = manifest_reading.objects
    assert isinstance(service, Service)
    assert [port.port for port in service.ports] == [53]


@pytest.mark.parametrize("said", ["0", "''", "null"])
def test_empty_target_port_is_the_port(said: str) -> None:
    """Kubernetes' SetDefaults_Service does the same for 0, an empty name and null."""
    service = value(_service(f"{{ports: [{{port: 81, targetPort: {said}}}]}}"))
    assert isinstance(service, Service)
    assert [(port.port, port.target_port) for port in service.ports] == [(81, 81)]


def test_null_label_in_a_selector_is_ignored() -> None:
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
def test_invalid_service_is_refused_with_its_field(spec: str, expected: tuple[str, str, str, str]) -> None:
    """An invalid value in a field that is read refuses the Service."""
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
def test_unusual_service_is_reported_and_in_force_or_unused(
    spec: str, expected: tuple[str, str, str, str], objects: int
) -> None:
    """Duplicate or missing ports and an unknown appProtocol leave the Service in force.

    An ExternalName is not used.
    """
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


def test_pod_is_read_as_a_workload() -> None:
    """The UUID comes from our label or OSM's, the service from the ServiceAccount or our annotation."""
    rest = _SPEC + "status: {podIP: 10.1.0.7, phase: Running, conditions: [{type: Ready, status: 'True'}]}\n"
    assert value(_pod("{osm-proxy-uuid: u1}", rest)) == _pod_value("u1", "cart", (("osm-proxy-uuid", "u1"),))
    both = "{osm-proxy-uuid: u1, meshwright.dev/proxy-uuid: u2}"
    labels = (("meshwright.dev/proxy-uuid", "u2"), ("osm-proxy-uuid", "u1"))
    assert value(_pod(both, rest, "{meshwright.dev/service: till}")) == _pod_value("u2", "till", labels)
    assert value(_pod("{}", rest)) == _pod_value(None, "cart", ())


def test_pod_uid_may_be_the_proxy_uuid() -> None:
    """The label value `metadata.uid` is replaced by each Pod's UID, because Pods share their template."""
    rest = _SPEC + "status: {podIP: 10.1.0.7, phase: Running, conditions: [{type: Ready, status: 'True'}]}\n"
    uid, label = "1f0f2b1c-5c33-4d0a-9b43-0d3c4c1d2e3f", ("meshwright.dev/proxy-uuid", "metadata.uid")
    written = _pod("{meshwright.dev/proxy-uuid: metadata.uid}", rest)
    with_uid = written.replace("labels:", f"uid: {uid}, labels:", 1)
    assert with_uid != written
    assert value(with_uid) == replace(_pod_value(uid, "cart", (label,)), uid=uid)
    assert complaints(written) == [
        ("error", "MW1013", "metadata.labels[meshwright.dev/proxy-uuid]", '"metadata.uid"')
    ]


def test_pod_keeps_its_uid() -> None:
    """The UID distinguishes the Pod from a later one of the same name."""
    rest = _SPEC + "status: {podIP: 10.1.0.7}\n"
    unready = replace(_pod_value(None, "cart", ()), health=Health.UNREADY)
    assert value(_pod("{}", rest).replace("{name: cart-0", "{uid: 2b2b, name: cart-0")) == replace(
        unready, uid="2b2b"
    )
    assert complaints(_pod("{}", rest).replace("{name: cart-0", "{uid: 2b2b, name: cart-0")) == []


def test_pod_keeps_the_name_of_its_node() -> None:
    """The node is only displayed, and an invalid name is an error."""
    rest = _SPEC.replace("containers:", "nodeName: worker-2\n  containers:") + "status: {podIP: 10.1.0.7}\n"
    unready = replace(_pod_value(None, "cart", ()), health=Health.UNREADY)
    assert value(_pod("{}", rest)) == replace(unready, node="worker-2")
    assert complaints(
        _pod(
            "{}", _SPEC.replace("containers:", "nodeName: [1]\n  containers:") + "status: {podIP: 10.1.0.7}\n"
        )
    ) == [("error", "MW1010", "spec.nodeName", "a list of 1 item")]


def test_pod_without_an_address_or_after_its_end_is_not_used() -> None:
    """The reason is reported as information, because both states are normal."""
    expected = [("info", "MW1022", "status.podIP", "")]
    assert complaints(_pod("{}", _SPEC)) == expected
    assert complaints(_pod("{}", "status: {podIP: ''}")) == expected
    assert complaints(_pod("{}", "status: {podIP: 10.0.0.1, phase: Failed}")) == [
        ("info", "MW1020", "status.phase", "")
    ]


def test_invalid_address_or_uuid_refuses_the_pod() -> None:
    """The problem names the field and the value."""
    assert complaints(_pod("{}", "status: {podIP: 10.0.0}")) == [
        ("error", "MW1013", "status.podIP", '"10.0.0"')
    ]
    assert complaints(_pod("{osm-proxy-uuid: A_B}", "status: {podIP: 10.0.0.1}")) == [
        ("error", "MW1013", "metadata.labels[osm-proxy-uuid]", '"A_B"')
    ]


@pytest.mark.parametrize("name", ["serviceAccountName", "serviceAccount"])
@pytest.mark.parametrize("account", ["a/b", "Cart", "café", "a_b", "-a", "a" * 254])
def test_service_account_of_a_pod_must_be_a_kubernetes_name(name: str, account: str) -> None:
    """The name becomes part of the SPIFFE ID, where a slash would give another identity."""
    result = complaints(_pod("{}", f"spec: {{{name}: {account}}}\nstatus: {{podIP: 10.0.0.1}}"))
    assert [item[:3] for item in result] == [("error", "MW1013", f"spec.{name}")]


def test_endpoint_slice_and_endpoints_are_read_alike() -> None:
    """Addresses are sorted and separated by readiness; ports have names and numbers."""
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
    result = value(_LIFE % (metadata, spec, ready))
    assert isinstance(result, Workload)
    return result


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
def test_health_of_a_pod_follows_from_its_ready_condition_and_deletion(
    metadata: str, ready: str, expected: Health
) -> None:
    """A deleted Pod that is still ready is draining; other Pods are ready or unready."""
    assert _living(metadata, ready=ready).health is expected


def test_pod_has_all_its_addresses_and_may_share_its_nodes() -> None:
    """A Pod in the host's network shares the node's address, unless it has a sidecar."""
    workload = _living()
    assert (workload.address, workload.other_addresses) == ("10.1.0.7", ("fd00::7",))
    assert not workload.shares_address
    assert _living(spec=", hostNetwork: true").shares_address
    assert not _living(", labels: {osm-proxy-uuid: u-1}", ", hostNetwork: true").shares_address


def test_ports_of_sidecar_containers_belong_to_the_pod() -> None:
    """Init containers that end have no ports that can be called."""
    spec = (
        ", initContainers: [{name: a, restartPolicy: Always, ports: [{containerPort: 9000, name: side}]}, "
        "{name: b, ports: [{containerPort: 9001}]}], containers: [{ports: [{containerPort: 80}]}]"
    )
    assert _living(spec=spec).ports == (WorkloadPort(Port(80)), WorkloadPort(Port(9000), "side"))


def test_endpoint_slice_gives_each_address_its_health_and_zone() -> None:
    """A repeated address has its best state and that state's zone; an unknown readiness means ready."""
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


def test_unready_addresses_of_endpoints_are_kept() -> None:
    """An address that is ready in one subset and unready in another is ready."""
    text = """
apiVersion: v1
kind: Endpoints
metadata: {name: cart, namespace: shop}
subsets:
- {addresses: [{ip: 10.0.0.1}], notReadyAddresses: [{ip: 10.0.0.2}], ports: [{port: 80}]}
- {notReadyAddresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}
"""
    endpoint_slice = EndpointSlice("cart", NS, "cart", ("10.0.0.1",), (("", 80),), unready=("10.0.0.2",))
    assert value(text) == endpoint_slice


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
def test_dual_stack_service_has_both_addresses(spec: str, first: str | None, others: tuple[str, ...]) -> None:
    """The first one is `clusterIP`; a headless Service has none."""
    result = value(_service(f"{{{spec}, ports: [{{port: 80}}]}}"))
    assert isinstance(result, Service)
    assert (result.cluster_ip, result.other_addresses) == (first, others)


def test_service_publishes_unready_addresses_only_if_it_is_set() -> None:
    """The field is `publishNotReadyAddresses`, which is false by default."""
    text = "{ports: [{port: 80}], selector: {a: b}%s}"
    answer = [value(_service(text % more)) for more in ("", ", publishNotReadyAddresses: true")]
    assert [item.publish_not_ready for item in answer if isinstance(item, Service)] == [False, True]


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
def test_invalid_cluster_field_is_an_error_with_its_field(text: str, field: str) -> None:
    """The cluster usually writes these fields, such as status.podIPs."""
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
def test_non_default_kube_proxy_fields_are_kept(said: str, kept: tuple[tuple[str, str], ...]) -> None:
    """The API server writes the defaults into every Service, so these are no user's intention."""
    text = _service(f"{{ports: [{{port: 80}}], {said}}}")
    result = value(text)
    assert isinstance(result, Service)
    assert (result.without_effect, complaints(text)) == (kept, [])


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
def test_enabled_kube_proxy_annotations_are_kept(name: str, said: str, kept: bool) -> None:
    """With them kube-proxy prefers near endpoints, although no field of the Service requests it."""
    full = f"service.kubernetes.io/{name}"
    text = _service("{ports: [{port: 80}]}").replace("shop}", f'shop, annotations: {{{full}: "{said}"}}}}')
    result = value(text)
    assert isinstance(result, Service)
    place = ((f"metadata.annotations[{full}]", said),)
    assert (result.without_effect, complaints(text)) == (place if kept else (), [])
