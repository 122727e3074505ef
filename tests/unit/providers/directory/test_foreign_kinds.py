"""Tests of documents of other projects: they keep no mesh object in force, and each kind is reported once."""

import pytest

from meshwright.mesh import kinds
from meshwright.mesh.kinds import TCP_ROUTE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Severity
from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.kinds import READ
from tests.meshes.texts import account

OURS = (
    "apiVersion: specs.smi-spec.io/v1alpha4\nkind: TCPRoute\nmetadata: {name: db, namespace: shop}\n"
    "spec: {matches: {ports: [5432]}}\n"
)
KEY = ObjectKey(TCP_ROUTE, Namespace("shop"), "db")
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: db, namespace: shop}\n"
    "spec: {ports: [{name: tcp, port: 5432}]}\n"
)


def _other(api_version: str, kind: str, name: str = "db", rest: str = "spec: {}") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\n{rest}\n"


_POD = "{metadata: {labels: {app: db}}, spec: {serviceAccountName: db, containers: [{name: a, image: b}]}}"
_TEMPLATE = f"spec: {{template: {_POD}}}"
BODIES = {
    kinds.NAMESPACE: "",
    kinds.SERVICE_ACCOUNT: "",
    kinds.SECRET: "type: Opaque",
    kinds.CONFIG_MAP: "data: {ca.crt: text}",
    kinds.SERVICE: "spec: {ports: [{name: tcp, port: 5432}]}",
    kinds.POD: "spec: {serviceAccountName: db}\nstatus: {podIP: 10.0.0.1}",
    kinds.ENDPOINTS: "subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1}]}]",
    kinds.POD_TEMPLATE: f"template: {_POD}",
    kinds.REPLICATION_CONTROLLER: _TEMPLATE,
    kinds.DAEMON_SET: _TEMPLATE,
    kinds.DEPLOYMENT: _TEMPLATE,
    kinds.REPLICA_SET: _TEMPLATE,
    kinds.STATEFUL_SET: _TEMPLATE,
    kinds.JOB: _TEMPLATE,
    kinds.CRON_JOB: f"spec: {{jobTemplate: {{{_TEMPLATE}}}}}",
    kinds.ENDPOINT_SLICE: "addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]\nports: [{port: 1}]",
    kinds.TRAFFIC_TARGET: (
        "spec:\n  destination: {kind: ServiceAccount, name: db}\n"
        "  sources: [{kind: ServiceAccount, name: shop}]\n  rules: [{kind: TCPRoute, name: db}]"
    ),
    kinds.HTTP_ROUTE_GROUP: "spec: {matches: [{name: all, pathRegex: /.*, methods: [GET]}]}",
    kinds.TCP_ROUTE: "spec: {matches: {ports: [5432]}}",
    kinds.TRAFFIC_SPLIT: "spec: {service: db, backends: [{service: db, weight: 1}]}",
    kinds.EGRESS: (
        "spec: {sources: [{kind: ServiceAccount, name: shop}], hosts: [db.test], "
        "ports: [{number: 443, protocol: https}]}"
    ),
    kinds.UPSTREAM_TRAFFIC_SETTING: ("spec: {host: db.shop, connectionSettings: {tcp: {maxConnections: 1}}}"),
    kinds.TELEMETRY: "spec: {accessLog: {sampling: 1}}",
    kinds.EXTENSION_SERVICE: "spec: {host: collector, port: 4317}",
    kinds.MESH_CONFIG: "spec: {}",
    kinds.MESH_ROOT_CERTIFICATE: "spec: {provider: {tresor: {ca: {secretRef: {name: a}}}}}",
    kinds.ROUTE_POLICY: "spec: {service: db, rules: [{timeout: {request: 1s}}]}",
    kinds.UPSTREAM_POLICY: "spec: {service: db}",
    kinds.MUTUAL_TLS: "spec: {mode: Strict}",
    kinds.CLIENT_TRAFFIC_POLICY: (
        "spec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: db}]\n"
        "  connections: {max: 100}"
    ),
    kinds.EXTERNAL_AUTHORIZATION: "spec: {host: opa, port: 9191}",
    kinds.RETRY: (
        "spec:\n  source: {kind: ServiceAccount, name: db, namespace: shop}\n"
        "  destinations: [{kind: Service, name: db, namespace: shop}]\n  retryPolicy: {retryOn: 5xx}"
    ),
    kinds.INGRESS_BACKEND: (
        "spec:\n  backends: [{name: db, port: {number: 80, protocol: http}}]\n"
        "  sources: [{kind: IPRange, name: 10.0.0.0/8}]"
    ),
    kinds.HTTP_ROUTE: "spec: {rules: [{backendRefs: [{name: db, port: 80}]}]}",
    kinds.GRPC_ROUTE: "spec: {rules: [{backendRefs: [{name: db, port: 80}]}]}",
    kinds.TLS_ROUTE: "spec: {hostnames: [db.test], rules: [{backendRefs: [{name: db, port: 80}]}]}",
    kinds.GATEWAY_TCP_ROUTE: "spec: {rules: [{backendRefs: [{name: db, port: 80}]}]}",
    kinds.GATEWAY_CLASS: "spec: {controllerName: meshwright.dev/gateway-controller}",
    kinds.GATEWAY: "spec: {gatewayClassName: db, listeners: [{name: tcp, port: 5432, protocol: TCP}]}",
    kinds.LISTENER_SET: "spec: {parentRef: {name: db}, listeners: [{name: tcp, port: 5432, protocol: TCP}]}",
    kinds.BACKEND_TLS_POLICY: (
        "spec:\n  targetRefs: [{group: '', kind: Service, name: db}]\n"
        "  validation: {hostname: db.example, wellKnownCACertificates: System}"
    ),
    kinds.REFERENCE_GRANT: (
        "spec:\n  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}]\n"
        "  to: [{group: '', kind: Service}]"
    ),
    kinds.WORKLOAD: "spec: {serviceAccount: db, service: db, address: 10.0.0.1, ports: [{port: 1}]}",
}
"""A good body of each kind that is read and can be in force."""
KEPT = [kind for kind in BODIES if READ[kind].keeps_last_form]
"""The kinds whose last good form stays in force."""


def _ours(kind: Kind, version: str = "") -> str:
    # An unknown version makes the newest form invalid, so that the last good form stays.
    head = READ[kind].api_versions[-1]
    group, slash, _ = head.rpartition("/")
    labels = "{kubernetes.io/service-name: db}" if kind == kinds.ENDPOINT_SLICE else "{}"
    namespace = "" if kind == kinds.NAMESPACE else ", namespace: shop"
    api_version = f"{group}{slash}{version}" if version else head
    metadata = f"{{name: db{namespace}, labels: {labels}}}"
    return f"apiVersion: {api_version}\nkind: {kind.name}\nmetadata: {metadata}\n{BODIES[kind]}\n"


def _theirs(kind: Kind) -> str:
    return _other("other.example.net/v1", kind.name)


def _in_force(state: Manifests) -> list[tuple[Kind, bool]]:
    return [(key.kind, held.stale) for key, held in state.objects().items()]


def test_every_kind_read_except_udp_route_has_a_body() -> None:
    """UDPRoute is left out, because it is never in force."""
    assert READ.keys() - BODIES.keys() == {kinds.UDP_ROUTE}


@pytest.mark.parametrize("kind", BODIES, ids=str)
def test_document_of_another_group_never_takes_the_key_of_a_mesh_object(kind: Kind) -> None:
    """A mesh object is in force beside a foreign document, and is gone once its own document is deleted.

    The foreign document may be before it, after it or in another file.
    """
    alone = Manifests().apply("a.yaml", _ours(kind))
    assert _in_force(alone) == [(kind, False)]
    for files in (
        {"a.yaml": _ours(kind) + "---\n" + _theirs(kind)},
        {"a.yaml": _theirs(kind) + "---\n" + _ours(kind)},
        {"a.yaml": _ours(kind), "b.yaml": _theirs(kind)},
    ):
        both = Manifests().apply_all(files)
        assert both.objects().keys() == alone.objects().keys()
        assert _in_force(both) == [(kind, False)]
        foreign = [problem for problem in both.problems() if problem.code == "MW1031"]
        assert [(problem.key, problem.value) for problem in foreign] == [
            (None, f'"{kind.name}.other.example.net"')
        ]
        assert len(both.problems()) == len(alone.problems()) + 1
        gone = both.apply_all({file: _theirs(kind) for file in files})
        assert _in_force(gone) == []


@pytest.mark.parametrize("kind", KEPT, ids=str)
def test_last_good_form_is_kept_beside_a_document_of_another_group(kind: Kind) -> None:
    """The mesh object with an unknown version stays in force as stale, under its own key."""
    before = Manifests().apply("a.yaml", _ours(kind))
    (key,) = before.objects()
    after = before.apply("a.yaml", _theirs(kind) + "---\n" + _ours(kind, "v99"))
    assert _in_force(after) == [(kind, True)]
    assert [problem.key for problem in after.problems() if problem.severity is Severity.ERROR] == [key]


def _said(state: Manifests) -> list[str]:
    return [f"{problem.severity.value}: {problem}" for problem in state.problems()]


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (OURS, _other("traefik.io/v1alpha1", "TCPRoute")),
        (SERVICE, _other("serving.knative.dev/v1", "Service")),
    ],
)
def test_foreign_kind_of_the_same_name_keeps_no_deleted_object(ours: str, other: str) -> None:
    """The mesh object is in force beside the foreign document, and gone once its own document is."""
    before = Manifests().apply("a.yaml", ours + "---\n" + other)
    assert [(key.name, held.stale) for key, held in before.objects().items()] == [("db", False)]
    after = before.apply("a.yaml", other)
    assert dict(after.objects()) == {}
    assert [problem.severity.value for problem in after.problems()] == ["info"]


def test_missing_or_misspelt_api_version_keeps_the_last_good_form() -> None:
    """A missing or wrong apiVersion is an error and no wish to delete: the control of the test above."""
    before = Manifests().apply("a.yaml", OURS)
    for broken in (
        OURS.replace("apiVersion: specs.smi-spec.io/v1alpha4\n", ""),
        OURS.replace("specs.smi-spec.io/v1alpha4", "specs.smi-spec.io/v1alpha9"),
        OURS.replace("specs.smi-spec.io", "spec.smi-spec.io"),
    ):
        after = before.apply("a.yaml", broken)
        assert [(key, held.stale) for key, held in after.objects().items()] == [(KEY, True)]
        assert [problem.severity.value for problem in after.problems()] == ["error", "warning"]


def test_broken_foreign_document_keeps_the_missing_object_in_force() -> None:
    """A document that cannot be parsed may be any object, so the missing one stays, with problem MW1107."""
    broken = _other("traefik.io/v1alpha1", "TCPRoute", rest="spec: [")
    after = Manifests().apply("a.yaml", OURS).apply("a.yaml", broken)
    assert [(key, held.stale) for key, held in after.objects().items()] == [(KEY, True)]
    assert {(problem.code, problem.key) for problem in after.problems()} == {
        ("MW1101", None),
        ("MW1107", KEY),
    }


def test_each_foreign_kind_is_reported_once_with_its_count() -> None:
    """The first place is named, independent of the order of files; items of a list count one by one."""
    certificates = "---\n".join(_other("cert-manager.io/v1", "Certificate", name) for name in "abc")
    listed = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: cert-manager.io/v1, kind: Certificate}\n"
        "- {apiVersion: cert-manager.io/v1, kind: Certificate}\n"
    )
    gateway = _other("gateway.networking.k8s.io/v1", "UDPRoute")
    files = {"b.yaml": account("a") + "---\n" + certificates, "a.yaml": gateway, "c.yaml": listed}
    expected = [
        (
            "info: MW1031 a.yaml:1 (document 1): document: kind is "
            '"UDPRoute.gateway.networking.k8s.io": Meshwright does not use objects of this kind'
        ),
        (
            "info: MW1031 b.yaml:5 (document 2): document: kind is "
            '"Certificate.cert-manager.io": Meshwright does not use objects of this kind; there are '
            "5 such objects"
        ),
    ]
    state = Manifests().apply_all(files)
    assert _said(state) == expected
    later = Manifests().apply("c.yaml", listed).apply("a.yaml", gateway).apply("b.yaml", files["b.yaml"])
    assert _said(later) == expected
    fewer = later.apply("b.yaml", account("a"))
    assert _said(fewer)[1] == (
        'info: MW1031 c.yaml:1 (document 1): document: kind is "Certificate.cert-manager.io": '
        "Meshwright does not use objects of this kind; there are 2 such objects"
    )


def test_repeated_deployment_is_a_warning() -> None:
    """An overlay may repeat a Deployment, and only its Pod template is read, so this is no error."""
    deployment = _other("apps/v1", "Deployment", rest="spec: {template: {spec: {serviceAccountName: db}}}")
    patch = _other("apps/v1", "Deployment", rest="spec: {replicas: 3}")
    state = Manifests().apply_all({"base.yaml": deployment, "overlay.yaml": deployment, "patch.yaml": patch})
    assert [(problem.severity.value, problem.code, str(problem.origin)) for problem in state.problems()] == [
        ("warning", "MW1106", "overlay.yaml:1 (document 1)"),
        ("info", "MW1020", "patch.yaml:1 (document 1)"),
    ]
    assert [str(key) for key in state.objects()] == ["Deployment shop/db"]
