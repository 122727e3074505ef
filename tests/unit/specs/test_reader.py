"""Tests of the reader for arbitrary documents: the choice of the kind's reader, and no exceptions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey
from meshwright.specs.codes import Code
from meshwright.specs.kinds import READ
from meshwright.specs.reader import read
from meshwright.specs.show import LIMIT, show
from tests.meshes.reading import ORIGIN, complaints, reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("just text", ("error", "MW1001", "", "text of 9 characters")),
        ("2026", ("error", "MW1001", "", "a number")),
        ("yes", ("error", "MW1001", "", "true or false")),
        ("[1, 2]", ("error", "MW1001", "", "a list of 2 items")),
        ("{apiVersion: v1}", ("error", "MW1002", "kind", "null")),
        ("{kind: Service}", ("error", "MW1002", "apiVersion", "null")),
        ("{apiVersion: v1, kind: 7}", ("error", "MW1002", "kind", "7")),
        ("{apiVersion: v1, kind: Sevrice, metadata: {name: a}}", ("error", "MW1003", "kind", '"Sevrice"')),
        (
            "{apiVersion: v2, kind: Service, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"v2"'),
        ),
        (
            "{apiVersion: v1, kind: Deployment, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"v1"'),
        ),
        (
            "{apiVersion: specs.smi-spec.io/v1alpha5, kind: TCPRoute, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"specs.smi-spec.io/v1alpha5"'),
        ),
        ("{apiVersion: v1, kind: Service}", ("error", "MW1011", "metadata", "")),
        (
            "{apiVersion: v1, kind: Service, metadata: []}",
            ("error", "MW1010", "metadata", "a list of 0 items"),
        ),
        ("{apiVersion: v1, kind: Service, metadata: {}}", ("error", "MW1011", "metadata.name", "")),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: A_b}}",
            ("error", "MW1006", "metadata.name", '"A_b"'),
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b.c}}",
            ("error", "MW1006", "metadata.namespace", '"b.c"'),
        ),
        ("{apiVersion: v1, kind: ConfigMap, data: {a: hunter2}}", ("info", "MW1031", "kind", '"ConfigMap"')),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: a}}", ("info", "MW1020", "spec.template", "")),
        (
            "{apiVersion: apps/v1, kind: Deploymnet, metadata: {name: a}}",
            ("error", "MW1003", "kind", '"Deploymnet"'),
        ),
        (
            "{apiVersion: policy.openservicemesh.io/v1alpha1, kind: Egres, metadata: {name: a}}",
            ("error", "MW1003", "kind", '"Egres"'),
        ),
        (
            "{apiVersion: acess.smi-spec.io/v1alpha3, kind: TrafficTarget, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"acess.smi-spec.io/v1alpha3"'),
        ),
        (
            "{apiVersion: config.openservicmesh.io/v1alpha2, kind: MeshConfig, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"config.openservicmesh.io/v1alpha2"'),
        ),
        (
            "{apiVersion: specs.smi-spec.io/v1alpha4, kind: TrafficTarget, metadata: {name: a}}",
            ("error", "MW1004", "apiVersion", '"specs.smi-spec.io/v1alpha4"'),
        ),
    ],
)
def test_unreadable_document_is_exactly_one_problem(text: str, expected: tuple[str, str, str, str]) -> None:
    """The problem names the field and the value, and no object is in force."""
    assert complaints(text) == [expected]
    assert reading(text).objects == ()


def test_list_is_read_item_by_item() -> None:
    """A bad item affects only itself, and items with and without a known key are kept apart."""
    manifest_reading = reading("""
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
- {apiVersion: v1, kind: Service, metadata: {name: b}, spec: []}
- 7
- {apiVersion: v1, kind: List, items: []}
""")
    name = Namespace("a")
    assert manifest_reading.objects == ((ObjectKey.of_namespace("a"), NamespaceObject(name)),)
    keys = [unread_manifest.key for unread_manifest in manifest_reading.unread]
    assert keys == [ObjectKey(SERVICE, Namespace("default"), "b"), None, None]
    assert len({unread_manifest.mark for unread_manifest in manifest_reading.unread}) == 3
    assert [(problem.code, problem.field) for problem in manifest_reading.problems] == [
        ("MW1010", "spec"),
        ("MW1001", "items[2]"),
        ("MW1003", "items[3].kind"),
    ]


def test_unnamed_item_of_any_kind_is_identified_by_its_index() -> None:
    """A named item is identified by its key."""
    manifest_reading = reading("""
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Sevrice, metadata: {}}
- {apiVersion: v1, kind: Sevrice, metadata: {name: a}}
- {apiVersion: v2, kind: Service}
- {apiVersion: v2, kind: Service, metadata: {name: b}}
- {apiVersion: acess.smi-spec.io/v1alpha3, kind: TrafficTarget}
- {apiVersion: policy.openservicemesh.io/v1alpha1, kind: Egres}
""")
    assert [(problem.code, problem.field, str(problem.key)) for problem in manifest_reading.problems] == [
        ("MW1003", "items[0].kind", "None"),
        ("MW1003", "kind", "Service default/a"),
        ("MW1004", "items[2].apiVersion", "None"),
        ("MW1004", "apiVersion", "Service default/b"),
        ("MW1004", "items[4].apiVersion", "None"),
        ("MW1003", "items[5].kind", "None"),
    ]


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
_NAMES = """
spec metadata name namespace labels destination sources rules specs matches kind port ports service backends
weight headers methods pathRegex address uuid upstreams localPort protocol traffic sidecar certificate status
podIP endpoints addresses subsets ip clusterIP selector targetPort items
"""
_WORDS = st.sampled_from(sorted(_NAMES.split()))
_LIKELY = st.recursive(
    _SCALARS | st.sampled_from(["ServiceAccount", "HTTPRouteGroup", "a", "10.0.0.1", "1", 80, "*", "GET"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=6),
    max_leaves=40,
)


@given(_ANYTHING)
def test_arbitrary_document_gives_problems_and_no_exception(document: object) -> None:
    """No arbitrary document is an object."""
    manifest_reading = read(document, ORIGIN)
    assert manifest_reading.problems
    assert manifest_reading.objects == ()


@given(
    st.sampled_from(
        [(kind.name, version) for kind, reader in READ.items() for version in reader.api_versions]
    ),
    st.dictionaries(_WORDS, _LIKELY, max_size=6),
    st.booleans(),
)
def test_known_kind_with_arbitrary_fields_gives_an_object_or_a_problem(
    kind: tuple[str, str], document: dict[str, object], named: bool
) -> None:
    """The values in problems are short."""
    document |= {"kind": kind[0], "apiVersion": kind[1]}
    if named:
        document["metadata"] = {"name": "a"}
    manifest_reading = read(document, ORIGIN)
    assert manifest_reading.objects or manifest_reading.problems
    assert all(len(problem.value) <= LIMIT for problem in manifest_reading.problems)
    assert not (manifest_reading.objects and manifest_reading.unread)


def test_problem_codes_are_unique_and_explained() -> None:
    """Each code has the form MW10xx or MW11xx and a one-line explanation."""
    assert all(re.fullmatch(r"MW1[01]\d\d", code) for code in Code)
    assert len({str(code) for code in Code}) == len(Code.__members__)
    assert all(code.doc.endswith(".") and "\n" not in code.doc for code in Code)


def test_values_in_problems_are_short_and_never_secret() -> None:
    """Long values are cut, containers are described, and values of secret-like fields are hidden."""
    assert show("x" * 500) == '"' + "x" * 76 + "..."
    assert show("a\nb") == r'"a\nb"'
    assert show({"a": 1}) == "a mapping of 1 key"
    assert show(10**400) == "an integer of 1329 bits"
    assert show("hunter2", "spec.clientSecret") == "(hidden)"


def test_unnamed_item_of_a_list_is_identified_by_its_index() -> None:
    """An item without a name has no other identification; a named item is identified by its name."""
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: good}}
- {apiVersion: v1, kind: Service, metadata: {namespace: shop}}
- {apiVersion: v1, kind: Service}
- {apiVersion: v1, kind: Service, metadata: {name: BAD}}
- {apiVersion: v1, metadata: {}}
- {apiVersion: v1, kind: Service, metadata: {name: web}, spec: 7}
"""
    assert complaints(text) == [
        ("error", "MW1011", "items[1].metadata.name", ""),
        ("error", "MW1011", "items[2].metadata", ""),
        ("error", "MW1006", "items[3].metadata.name", '"BAD"'),
        ("error", "MW1002", "items[4].kind", "null"),
        ("error", "MW1010", "spec", "7"),
    ]


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "config.openservicemesh.io/v1alpha2, kind: MeshConfig",
            "{certificate: {serviceCertValidityDuration: 24}}",
            "must be a duration from 1s to 87600h, for example 24h",
        ),
        (
            "policy.openservicemesh.io/v1alpha1, kind: UpstreamTrafficSetting",
            "{host: a.shop.svc.cluster.local, connectionSettings: {tcp: {connectTimeout: 5}}}",
            "must be a duration from 1ms to 1h, for example 250ms or 5s",
        ),
        (
            "config.openservicemesh.io/v1alpha2, kind: MeshConfig",
            "{traffic: {inboundExternalAuthorization: {enable: true, address: opa, timeout: 1}}}",
            "must be a duration from 1ms to 5m, for example 1s",
        ),
        (
            "config.openservicemesh.io/v1alpha2, kind: MeshConfig",
            "{sidecar: {tlsMinProtocolVersion: 1.2}}",
            "must be one of TLS_AUTO, TLSv1_2, TLSv1_3",
        ),
        (
            "config.openservicemesh.io/v1alpha2, kind: MeshConfig",
            "{sidecar: {logLevel: off}}",
            "must be one of critical, debug, error, info, off, trace, warn, warning; put the value in quotes",
        ),
        (
            "v1, kind: Service",
            "{clusterIP: 10, ports: [{port: 80}]}",
            (
                "must be the IP address of one machine, for example 10.0.0.7 or fd00::7, "
                "or None for a headless Service"
            ),
        ),
        (
            "policy.openservicemesh.io/v1alpha1, kind: Retry",
            "{source: {kind: 7, name: a}, destinations: [], retryPolicy: {retryOn: 5xx}}",
            "must be ServiceAccount",
        ),
        (
            "meshwright.dev/v1alpha1, kind: Workload",
            "{address: 10.0.0.1, uuid: 5}",
            "must be a DNS label: 1 to 63 characters a-z, 0-9 and inner hyphens; put the value in quotes",
        ),
        (
            "meshwright.dev/v1alpha1, kind: Workload",
            "{address: 10.0.0.1, uuid: 1.5}",
            "must be a DNS label: 1 to 63 characters a-z, 0-9 and inner hyphens",
        ),
        (
            "meshwright.dev/v1alpha1, kind: Workload",
            "{address: 10.0.0.1, otherAddresses: [10]}",
            "must be the IP address of one machine, for example 10.0.0.7 or fd00::7",
        ),
        (
            "meshwright.dev/v1alpha1, kind: Workload",
            "{address: 10.0.0.1, locality: [a]}",
            "must be text",
        ),
        (
            "meshwright.dev/v1alpha1, kind: Workload",
            "{address: 10.0.0.1, locality: 7}",
            "must be text; put the value in quotes",
        ),
        (
            "v1, kind: Service",
            "{selector: {app: [a]}, ports: [{port: 80}]}",
            "must be text",
        ),
        (
            "v1, kind: Service",
            "{selector: {app: 7}, ports: [{port: 80}]}",
            "must be text; put the value in quotes",
        ),
        (
            "policy.openservicemesh.io/v1alpha1, kind: Retry",
            "{source: {kind: ServiceAccount, name: -3}, destinations: [], retryPolicy: {retryOn: 5xx}}",
            "must be a Kubernetes name: at most 253 characters a-z, 0-9, hyphens and dots",
        ),
    ],
)
def test_number_instead_of_text_is_reported_with_the_required_form(
    kind: str, spec: str, expected: str
) -> None:
    """The advice to quote the value is given only if the quoted value is valid."""
    text = f"{{apiVersion: {kind}, metadata: {{name: osm-mesh-config, namespace: a}}, spec: {spec}}}"
    lines = [problem.expected for problem in reading(text).problems if problem.code == "MW1010"]
    assert lines == [expected]


def test_empty_text_in_a_list_is_reported_without_the_advice_to_quote() -> None:
    """The value is quoted already."""
    text = (
        "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIPs: [''], ports: [{port: 80}]}}"
    )
    assert {problem.expected for problem in reading(text).problems} == {"must not be empty"}
