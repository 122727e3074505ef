"""Tests of Meshwright's annotations on Namespaces, Pods, Workloads and Services, and their problems."""

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
    """Return a Namespace."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {annotations}}}"


def workload(annotations: str) -> str:
    """Return a Workload."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    kind = "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
    return f"{kind}metadata: {metadata}\nspec: {{address: 10.0.0.1}}"


def pod(annotations: str) -> str:
    """Return a Pod."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nstatus: {{podIP: 10.0.0.1}}"


def service(annotations: str) -> str:
    """Return a Service."""
    metadata = f"{{name: a, namespace: shop, annotations: {annotations}}}"
    return f"apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {{ports: [{{port: 80}}]}}"


@pytest.mark.parametrize(("text", "expected"), [("{}", None), ("true", True), ("false", False)])
def test_permissive_annotation_of_a_namespace_is_read(text: str, expected: bool | None) -> None:
    """Without the annotation the MeshConfig decides."""
    result = value(namespace("{}" if text == "{}" else f'{{{PERMISSIVE}: "{text}"}}'))
    assert isinstance(result, NamespaceObject)
    assert result.permissive is expected


def pattern(space: str, name: str) -> ServicePattern:
    """Return a pattern; an empty part matches any name."""
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
def test_egress_services_annotation_is_read_on_three_kinds(text: str, expected: Scope) -> None:
    """Patterns have a namespace and a name, sorted without duplicates; `none` is an empty list."""
    for write in (namespace, pod, workload):
        result = value(write(f'{{{EGRESS}: "{text}"}}'))
        assert isinstance(result, NamespaceObject | Workload)
        assert result.scope == expected
        plain = value(write("{}"))
        assert isinstance(plain, NamespaceObject | Workload)
        assert plain.scope is None


@pytest.mark.parametrize("text", ["", "shop", "a/b/c", "a/b,", "A/b", "a/*b", "none, a/b", "/", "a/ b"])
def test_invalid_egress_services_annotation_is_an_error(text: str) -> None:
    """An error keeps the last good form in force, with its earlier restriction."""
    for write in (namespace, pod, workload):
        result = complaints(write(f'{{{EGRESS}: "{text}"}}'))
        assert [item[:3] for item in result] == [("error", "MW1013", f"metadata.annotations.{EGRESS}")]


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
def test_interception_annotations_of_a_pod_are_read(text: str, expected: Transparent) -> None:
    """They correspond to `spec.interception` of a Workload; the default is redirect for IPv4."""
    result = value(pod(text))
    assert isinstance(result, Workload)
    assert result.interception == expected


@pytest.mark.parametrize("addresses", [("10.0.0.1", "FD00::1"), ("fd00::1",), ("fd00::1", "10.0.0.1")])
@pytest.mark.parametrize(("said", "captured"), [("{}", True), (f"{{{IPV6}: 'false'}}", False)])
def test_pod_with_an_ipv6_address_has_ipv6_captured_by_default(
    addresses: tuple[str, ...], said: str, captured: bool
) -> None:
    """Otherwise a caller of that address would bypass the sidecar."""
    ips = ", ".join(f"{{ip: '{address}'}}" for address in addresses)
    result = value(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop, annotations: {said}}}\n"
        f"spec: {{}}\nstatus: {{podIP: '{addresses[0]}', podIPs: [{ips}]}}"
    )
    assert isinstance(result, Workload)
    assert result.interception == Transparent(ipv6=captured)


@pytest.mark.parametrize(
    ("name", "text", "quoted"),
    [
        (CAPTURE, "TPROXY", '"TPROXY"'),
        (CAPTURE, "none", '"none"'),
        (IPV6, "'yes'", '"yes"'),
        (IPV6, "true", "true"),
    ],
)
def test_invalid_interception_annotation_is_an_error_with_its_value(
    name: str, text: str, quoted: str
) -> None:
    """A value that is no text is an error too."""
    result = complaints(pod(f"{{{name}: {text}}}"))
    assert [(item[0], *item[2:]) for item in result] == [("error", f"metadata.annotations.{name}", quoted)]


@pytest.mark.parametrize("expected", EscapedSlashes)
def test_escaped_slashes_annotation_of_a_service_is_read(expected: EscapedSlashes) -> None:
    """By default requests with escaped slashes are rejected."""
    result = value(service(f"{{{SLASHES}: {expected}}}"))
    plain = value(service("{}"))
    assert isinstance(result, Service)
    assert isinstance(plain, Service)
    assert (result.escaped_slashes, plain.escaped_slashes) == (expected, EscapedSlashes.REJECT)


@pytest.mark.parametrize(
    ("text", "quoted"), [("KEEP", '"KEEP"'), ("unescape", '"unescape"'), ("true", "true")]
)
def test_invalid_escaped_slashes_annotation_is_an_error_with_its_value(text: str, quoted: str) -> None:
    """The problem names the annotation."""
    result = complaints(service(f"{{{SLASHES}: {text}}}"))
    assert [(item[0], *item[2:]) for item in result] == [("error", f"metadata.annotations.{SLASHES}", quoted)]


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
def test_unread_name_with_our_prefix_is_a_warning(written: str, named: str, expected: str) -> None:
    """The message has the probable name or place, and the object is in force."""
    manifest_reading = reading(written)
    (problem,) = manifest_reading.problems
    assert (problem.severity, problem.code, problem.field) == ("warning", "MW1025", f"metadata.{named}")
    assert problem.expected == f"is not read on this object; {expected}"
    assert len(manifest_reading.objects) == 1


def test_names_of_the_injector_and_of_other_projects_are_accepted() -> None:
    """The annotations of an injected Pod are among them, and so are names without a domain."""
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
def test_permissive_annotation_must_be_true_or_false(text: str) -> None:
    """Kubernetes writes booleans in annotations as true and false; other values must not open a namespace."""
    result = complaints(namespace(f"{{{PERMISSIVE}: {text}}}"))
    assert [item[:3] for item in result] == [("error", "MW1013", f"metadata.annotations.{PERMISSIVE}")]


def test_null_annotation_or_label_is_ignored() -> None:
    """An API server accepts null as well."""
    result = value(namespace(f"{{{PERMISSIVE}: null, a: null, b: c}}, labels: {{app: shop, version: null}}"))
    assert isinstance(result, NamespaceObject)
    assert result == NamespaceObject(result.name, (("app", "shop"),), (("b", "c"),))
    assert complaints(pod("{a: null}, labels: {app: shop, version: null}")) == []


def test_annotation_that_is_no_text_is_one_problem() -> None:
    """YAML's true is a boolean, which Kubernetes refuses as well."""
    result = complaints(namespace(f"{{{PERMISSIVE}: true}}"))
    assert [item[:3] for item in result] == [("error", "MW1010", f"metadata.annotations[{PERMISSIVE}]")]
