"""Our own annotations: read from Namespaces, Pods and Workloads, and refused by name where they are wrong."""

import pytest

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.service import EscapedSlashes, Scope, Service, ServicePattern
from meshwright.mesh.workload import Capture, Transparent, Workload
from meshwright.sidecars.injection import names
from meshwright.specs.own_names import INJECTED
from tests.meshes.reading import complaints, reading, value

EGRESS = "meshwright.dev/egress-services"
DRIVER = "meshwright.dev/sidecar-driver"
PERMISSIVE = "meshwright.dev/permissive"
CAPTURE = "meshwright.dev/interception-capture"
IPV6 = "meshwright.dev/interception-ipv6"
SLASHES = "meshwright.dev/escaped-slashes"
INJECT = "meshwright.dev/inject"
REVISION = "meshwright.dev/revision"


def namespace(annotations: str) -> str:
    """Write a Namespace."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {annotations}}}"


def workload(annotations: str) -> str:
    """Write a Workload."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    kind = "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
    return f"{kind}metadata: {metadata}\nspec: {{address: 10.0.0.1}}"


def pod(annotations: str) -> str:
    """Write a Pod."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nstatus: {{podIP: 10.0.0.1}}"


def service(annotations: str) -> str:
    """Write a Service."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    return f"apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {{ports: [{{port: 80}}]}}"


@pytest.mark.parametrize(("text", "expected"), [("{}", None), ("true", True), ("false", False)])
def test_a_namespace_says_whether_it_is_permissive(text: str, expected: bool | None) -> None:
    """Or leaves it to the MeshConfig."""
    found = value(namespace("{}" if text == "{}" else f'{{{PERMISSIVE}: "{text}"}}'))
    assert isinstance(found, NamespaceObject)
    assert found.permissive is expected


def pattern(space: str, name: str) -> ServicePattern:
    """Make a pattern; empty is any."""
    return ServicePattern(Namespace(space) if space else None, ServiceName(name) if name else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "books/*, default/buyer ,*/db",
            (pattern("", "db"), pattern("books", ""), pattern("default", "buyer")),
        ),
        ("a/b,a/b", (pattern("a", "b"),)),
        ("*/*", (pattern("", ""),)),
        ("none", ()),
    ],
)
def test_services_are_named_by_namespace_and_name(text: str, expected: Scope) -> None:
    """Alike on a Namespace, a Pod and a Workload: sorted, each once; none is an empty list."""
    for write in (namespace, pod, workload):
        found = value(write(f'{{{EGRESS}: "{text}"}}'))
        assert isinstance(found, NamespaceObject | Workload)
        assert found.scope == expected
        plain = value(write("{}"))
        assert isinstance(plain, NamespaceObject | Workload)
        assert plain.scope is None


@pytest.mark.parametrize("text", ["", "shop", "a/b/c", "a/b,", "A/b", "a/*b", "none, a/b", "/", "a/ b"])
def test_what_is_no_service_is_refused(text: str) -> None:
    """The whole object: what it narrowed before holds until it is mended."""
    for write in (namespace, pod, workload):
        found = complaints(write(f'{{{EGRESS}: "{text}"}}'))
        assert [each[:3] for each in found] == [("error", "MW1013", f"metadata.annotations.{EGRESS}")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", Transparent()),
        (f"{{{CAPTURE}: redirect, {IPV6}: 'false'}}", Transparent()),
        (f"{{{CAPTURE}: tproxy}}", Transparent(Capture.TPROXY)),
        (f"{{{IPV6}: 'true'}}", Transparent(ipv6=True)),
        (f"{{{CAPTURE}: tproxy, {IPV6}: 'true'}}", Transparent(Capture.TPROXY, ipv6=True)),
    ],
)
def test_a_pod_says_how_it_is_intercepted(text: str, expected: Transparent) -> None:
    """As a Workload does by `spec.interception`; without a word it is REDIRECT, of IPv4."""
    found = value(pod(text))
    assert isinstance(found, Workload)
    assert found.interception == expected


@pytest.mark.parametrize("addresses", [("10.0.0.1", "FD00::1"), ("fd00::1",), ("fd00::1", "10.0.0.1")])
@pytest.mark.parametrize(("said", "captured"), [("{}", True), (f"{{{IPV6}: 'false'}}", False)])
def test_a_pod_with_addresses_of_ipv6_has_it_captured(
    addresses: tuple[str, ...], said: str, captured: bool
) -> None:
    """Else whoever calls it there came past its sidecar."""
    ips = ", ".join(f"{{ip: '{each}'}}" for each in addresses)
    found = value(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop, annotations: {said}}}\n"
        f"spec: {{}}\nstatus: {{podIP: '{addresses[0]}', podIPs: [{ips}]}}"
    )
    assert isinstance(found, Workload)
    assert found.interception == Transparent(ipv6=captured)


@pytest.mark.parametrize(
    ("name", "text", "quoted"),
    [
        (CAPTURE, "TPROXY", '"TPROXY"'),
        (CAPTURE, "none", '"none"'),
        (IPV6, "'yes'", '"yes"'),
        (IPV6, "true", "true"),
    ],
)
def test_what_is_no_interception_is_refused(name: str, text: str, quoted: str) -> None:
    """The whole Pod, by the annotation; a value that is no text is none either."""
    found = complaints(pod(f"{{{name}: {text}}}"))
    assert [(each[0], *each[2:]) for each in found] == [("error", f"metadata.annotations.{name}", quoted)]


@pytest.mark.parametrize("expected", EscapedSlashes)
def test_a_service_says_what_becomes_of_escaped_slashes(expected: EscapedSlashes) -> None:
    """They are refused where it says nothing."""
    found = value(service(f"{{{SLASHES}: {expected}}}"))
    plain = value(service("{}"))
    assert isinstance(found, Service)
    assert isinstance(plain, Service)
    assert (found.escaped_slashes, plain.escaped_slashes) == (expected, EscapedSlashes.REJECT)


@pytest.mark.parametrize(
    ("text", "quoted"), [("KEEP", '"KEEP"'), ("unescape", '"unescape"'), ("true", "true")]
)
def test_what_is_no_way_with_escaped_slashes_is_refused(text: str, quoted: str) -> None:
    """The whole Service, by the annotation."""
    found = complaints(service(f"{{{SLASHES}: {text}}}"))
    assert [(each[0], *each[2:]) for each in found] == [("error", f"metadata.annotations.{SLASHES}", quoted)]


@pytest.mark.parametrize(
    ("written", "named", "expected"),
    [
        (
            namespace("{meshwright.dev/permisive: 'true'}"),
            "annotations[meshwright.dev/permisive]",
            f"did you mean {PERMISSIVE}?",
        ),
        (
            pod("{meshwright.dev/egress-service: a/b}"),
            "annotations[meshwright.dev/egress-service]",
            f"did you mean {EGRESS}?",
        ),
        (
            workload(f"{{{PERMISSIVE}: 'true'}}"),
            f"annotations[{PERMISSIVE}]",
            "write it as an annotation of Namespace",
        ),
        (
            workload("{meshwright.dev/x: ''}"),
            "annotations[meshwright.dev/x]",
            f"the annotations that Meshwright reads on a Workload are {EGRESS}, {DRIVER}",
        ),
        (
            f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{{PERMISSIVE}: 'true'}}}}",
            f"labels[{PERMISSIVE}]",
            "write it as an annotation",
        ),
        (namespace(f"{{{REVISION}: canary}}"), f"annotations[{REVISION}]", "write it as a label"),
        (
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, annotations: {meshwright.dev/x: y}}",
            "annotations[meshwright.dev/x]",
            "Meshwright reads no annotations with this prefix on a ServiceAccount",
        ),
        (
            namespace("{meshwrigth.dev/permissive: 'true'}"),
            "annotations[meshwrigth.dev/permissive]",
            f"did you mean {PERMISSIVE}?",
        ),
        (
            pod("{}, labels: {Meshwright.dev/proxy-uuid: y}"),
            "labels[Meshwright.dev/proxy-uuid]",
            "did you mean meshwright.dev/proxy-uuid?",
        ),
        (
            pod("{}, labels: {meshwright.dev/proxy-uid: y}"),
            "labels[meshwright.dev/proxy-uid]",
            "did you mean meshwright.dev/proxy-uuid?",
        ),
    ],
)
def test_a_name_of_ours_that_nobody_reads_is_said(written: str, named: str, expected: str) -> None:
    """With what may have been meant; the object is in force."""
    found = reading(written)
    (said,) = found.problems
    assert (said.severity, said.code, said.field) == ("warning", "MW1025", f"metadata.{named}")
    assert said.expected == f"is not read on this object and has no effect; {expected}"
    assert len(found.objects) == 1


def test_names_that_are_read_or_another_s_are_not_said() -> None:
    """Those of a patched pod among them; a name without a domain is whoever's manifest it is."""
    ours = {names.MESH_ANNOTATION, names.DRIVER_ANNOTATION, names.PROBES_ANNOTATION}
    ours |= {names.REASON_ANNOTATION, names.ADDED_ANNOTATION, names.OWN_ANNOTATION, names.ROOTS_ANNOTATION}
    ours |= {names.ORIGINALS_ANNOTATION, names.INTERCEPTION_ANNOTATION, names.SCRAPED_ANNOTATION}
    ours |= {names.RESOURCES_ANNOTATION}
    assert ours == INJECTED
    assert (
        complaints(pod(f"{{{', '.join(f'{each}: x' for each in sorted(INJECTED))}, other.dev/x: y}}")) == []
    )
    assert complaints(pod("{}, labels: {meshwright.dev: y, meshwright-dev: y}")) == []
    chosen = f"{{}}, labels: {{{INJECT}: 'true', {REVISION}: canary}}"
    assert (complaints(pod(chosen)), complaints(namespace(chosen))) == ([], [])


@pytest.mark.parametrize("text", ['"yes"', '"True"', '""', '"1"'])
def test_permissive_is_true_or_false(text: str) -> None:
    """As Kubernetes writes booleans in annotations; nothing else opens or closes a namespace."""
    found = complaints(namespace(f"{{{PERMISSIVE}: {text}}}"))
    assert [each[:3] for each in found] == [("error", "MW1013", f"metadata.annotations.{PERMISSIVE}")]


def test_a_null_is_as_good_as_none() -> None:
    """Of annotations and of labels, ours and others': an API server takes it in as well."""
    found = value(namespace(f"{{{PERMISSIVE}: null, a: null, b: c}}, labels: {{app: shop, version: null}}"))
    assert isinstance(found, NamespaceObject)
    assert found == NamespaceObject(found.name, (("app", "shop"),), (("b", "c"),))
    assert complaints(pod("{a: null}, labels: {app: shop, version: null}")) == []


def test_what_is_no_text_is_said_once() -> None:
    """YAML's true is no text; Kubernetes would refuse it as well."""
    found = complaints(namespace(f"{{{PERMISSIVE}: true}}"))
    assert [each[:3] for each in found] == [("error", "MW1010", f"metadata.annotations[{PERMISSIVE}]")]
