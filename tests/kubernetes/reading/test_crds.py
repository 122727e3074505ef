"""Tests of our CustomResourceDefinitions on a real API server: validation, versions, status, columns."""

import copy
import itertools
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Severity
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.kinds import READ
from meshwright.specs.manifest import DEFAULT_NAMESPACE, key_of, split_api_version
from meshwright.specs.reader import read
from meshwright.specs.reference.meanings.definitions import INSTALLED
from meshwright.specs.reference.recording import Choice
from meshwright.specs.reference.shapes import DescribedKind, Field, walked
from tests.kubernetes.tools.api_requests import DRY, STRICT, TABLE, Asking, established, path
from tests.unit.specs.reference.test_schema import _bare, _probed
from tools.real_parts.cluster import cluster

IS_LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
STEP = 1 if IS_LONG else 3
DESCRIBED = [described_kind for described_kind in reference.described() if described_kind.kind in INSTALLED]
ORIGIN = InCluster("here", "")
EXAMPLES = [
    pytest.param(dict(example), id=f"{described_kind.kind.name}-{number}")
    for described_kind in DESCRIBED
    for number, example in enumerate(described_kind.examples)
]
KEYS = [
    key_of(described_kind.kind, example)
    for described_kind in DESCRIBED
    for example in described_kind.examples
]
NAMESPACES = {object_key.namespace for object_key in KEYS if object_key is not None} - {DEFAULT_NAMESPACE}
ONLY_THE_READER = {
    ("MeshConfig", "spec.traffic.inboundExternalAuthorization.enable"),  # fields that it requires
    ("MeshConfig", "spec.certificate.ingressGateway.subjectAltNames"),  # at least one
    ("MeshConfig", "spec.traffic.inboundExternalAuthorization.address"),  # letters and dots that are no name
    ("UpstreamTrafficSetting", "spec.rateLimit.global.tcp.rateLimitService.host"),  # likewise
    ("ExtensionService", "spec.host"),
    ("UpstreamTrafficSetting", "spec.rateLimit.global.http.rateLimitService.host"),  # likewise
    ("MeshConfig", "spec.observability.tracing.address"),
    ("IngressBackend", "spec.sources[].name"),  # what it is depends on the kind of source
    ("MutualTLS", "spec.plaintext.sources[].name"),  # likewise
    ("MutualTLS", "spec.plaintext.sources[].namespace"),
    ("MutualTLS", "spec.plaintext"),  # has no effect beside Strict
    ("ExternalAuthorization", "spec.host"),  # letters and dots that are no name; absent where disabled
    ("ExternalAuthorization", "spec.port"),  # likewise absent
    ("ExternalAuthorization", "spec.ports"),  # a list that is empty
    ("MutualTLS", "spec.ports"),  # a list that is empty
    ("IngressBackend", "spec.sources[].namespace"),  # a Service must have one, and nothing else
    ("Workload", "spec.upstreams[]"),  # two listeners on one address and port
    ("Workload", "spec.upstreams[].service"),  # text or a mapping
    ("TrafficTarget", "spec.destination.namespace"),  # must be the object's own
    ("TrafficTarget", "destination.namespace"),
    ("Retry", "spec.source.namespace"),
    ("HTTPRouteGroup", "spec.matches[].headers"),  # a mapping or a list of such
    ("HTTPRouteGroup", "matches[].headers"),
    ("UpstreamTrafficSetting", "spec.rateLimit.global.http.descriptors[].entries[]"),  # exactly one of four
    (
        "UpstreamTrafficSetting",
        "spec.rateLimit.global.http.descriptors[].entries[].headerValueMatch.headers",
    ),
    (
        "UpstreamTrafficSetting",
        "spec.httpRoutes[].rateLimit.global.descriptors[].entries[]",
    ),  # exactly one of four
    (
        "UpstreamTrafficSetting",
        "spec.httpRoutes[].rateLimit.global.descriptors[].entries[].headerValueMatch.headers",
    ),
    *(
        ("ClientTrafficPolicy", f"spec.{place}")
        for place in (
            "headers",  # the least and the greatest size
            "connections.bufferSize",
            "http2.initialStreamWindowSize",
            "http2.initialConnectionWindowSize",
            "rateLimit.global.http.descriptors[].entries[]",  # exactly one of four
            "rateLimit.global.http.descriptors[].entries[].headerValueMatch.headers",
            "rateLimit.global.http.rateLimitService.host",  # letters and dots that are no name
            "rateLimit.global.tcp.rateLimitService.host",
        )
    ),
}
"""Where the reader refuses what the API server takes: by the place that the reader names."""

OF_SEVERAL_TYPES = ("headers", "service")
"""Fields of which, and of what stands in them, an API server cannot be told what they must be."""


@pytest.fixture(scope="module")
def asking(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """Return a client for a separate API server with our definitions."""
    with cluster(tmp_path_factory.mktemp("crds") / "cluster") as made, Asking(made) as asking:
        established(asking, *reference.definitions(()))
        for name in sorted(NAMESPACES):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            assert asking.create(namespace).status == 201
        yield asking


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_accepted_without_a_warning(asking: Asking, example: dict[str, Any]) -> None:
    """No field is dropped by strict validation."""
    answer = asking.create(example, DRY)
    assert (answer.status, answer.warnings) == (201, ()), answer.message
    for name in example.keys() - {"metadata"}:
        assert answer.body[name] == example[name]


@pytest.mark.parametrize("example", EXAMPLES)
def test_object_keeps_its_fields_and_meaning_in_every_version(
    asking: Asking, example: dict[str, Any]
) -> None:
    """There is no conversion, so an object is shown as it was written.

    A change of a label in another version loses nothing.
    """
    kind = str(example["kind"])
    reader = next(item for of, item in READ.items() if of.name == kind)
    metadata = {key: item for key, item in example["metadata"].items() if key != "creationTimestamp"}
    given = {
        **example,
        "metadata": {**metadata, "name": f"kept-{split_api_version(example['apiVersion'])[1]}"},
    }
    assert asking.create(given).status == 201
    try:
        meant = read(given, ORIGIN).objects
        for number, api_version in enumerate(reader.api_versions):
            at = f"{path(given, api_version)}?{STRICT}"
            shown = asking("GET", at).body
            assert {name: shown[name] for name in given.keys() - {"metadata", "apiVersion"}} == {
                name: given[name] for name in given.keys() - {"metadata", "apiVersion"}
            }
            assert _values(read_shown(dict(shown), ORIGIN).objects) == _values(meant)
            labelled = asking(
                "PATCH",
                at,
                {"metadata": {"labels": {**metadata.get("labels", {}), "n": str(number)}}},
                "application/merge-patch+json",
            )
            assert labelled.status == 200, labelled.message
    finally:
        assert asking("DELETE", path(given)).status == 200


def _values(objects: Any) -> list[tuple[str, str]]:
    """Return the meaning of objects, without labels and creation time."""
    return [(str(key), repr(getattr(value, "spec", None) or _plain(value))) for key, value in objects]


def _plain(value: Any) -> Mapping[str, object]:
    return {
        name: getattr(value, name)
        for name in getattr(value, "__slots__", ())
        if name not in ("labels", "created")
    }


@pytest.mark.parametrize("described", DESCRIBED, ids=lambda item: item.kind.name)
def test_api_server_and_reader_refuse_the_same_values(asking: Asking, described: DescribedKind) -> None:
    """Each value of each example is replaced by one of another type, out of range, null or absent.

    The reader refuses what the API server refuses, except an empty text for a default and a fraction for a
    quantity. The API server refuses what the reader refuses, except the places in ONLY_THE_READER.

    The short form sends every third of 11 000 probes. A place has 22 probes, so neighbouring places get
    different ones. `make test-definitions` sends all of them.
    """
    probes = [
        (copy.deepcopy(document), place, probe)
        for number, (document, place, probe) in enumerate(_probed(described))
        if not place.startswith("metadata") and number % STEP == 0
    ]
    with ThreadPoolExecutor(4) as threads:
        answers = [*threads.map(lambda item: asking.create(item[0], DRY), probes)]
    choices = {
        field.place for shape in described.shapes for field in walked(shape.body) if _has_choice(field)
    }
    wrongly, missed = set(), set()
    for (document, place, probe), answer in zip(probes, answers, strict=True):
        assert answer.status in (201, 400, 422), answer.message
        problems = read(document, ORIGIN).problems
        refused = [problem.field for problem in problems if problem.severity is Severity.ERROR]
        if answer.status == 201 and refused:
            missed.add((described.kind.name, _left_to_the_reader(_bare(refused[0]))))
        elif answer.status != 201 and not (refused or _is_default(probe, place, choices) or probe == 1.5):
            wrongly.add((place, repr(probe), answer.message[:300]))
    assert sorted(wrongly) == []
    known = {item for item in ONLY_THE_READER if item[0] == described.kind.name}
    assert sorted(missed - known) == []
    assert not IS_LONG or missed == known, "ONLY_THE_READER has places that the API server refuses too"


def _left_to_the_reader(place: str) -> str:
    names = [*itertools.accumulate(place.split("."), lambda before, name: f"{before}.{name}")]
    whole = (item for item in names if item.rpartition(".")[2].partition("[")[0] in OF_SEVERAL_TYPES)
    return next((item.removesuffix("[]") for item in whole), place)


def _has_choice(field: Field) -> bool:
    return any(isinstance(item, Choice) for item in field.types)


def _is_default(probe: object, place: str, choices: set[str]) -> bool:
    return probe == "" and place in choices


def _workload(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "books"},
        "spec": {"address": "10.0.0.7", **spec},
    }


def _config(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha3",
        "kind": "MeshConfig",
        "metadata": {"name": "c", "namespace": "books"},
        "spec": spec,
    }


def _target(*rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "access.smi-spec.io/v1alpha3",
        "kind": "TrafficTarget",
        "metadata": {"name": "t", "namespace": "books"},
        "spec": {"destination": {"kind": "ServiceAccount", "name": "a"}, "rules": [*rules], "sources": []},
    }


def _group(*names: str) -> dict[str, Any]:
    return {
        "apiVersion": "specs.smi-spec.io/v1alpha4",
        "kind": "HTTPRouteGroup",
        "metadata": {"name": "g", "namespace": "books"},
        "spec": {"matches": [{"name": name} for name in names]},
    }


UPSTREAM = {"service": "clock", "port": 80}
RULES = [
    (
        _workload(interception={}, applicationAddress="127.0.0.1"),
        "interception is only for transparent interception",
    ),
    (_workload(interception={}, upstreams=[UPSTREAM]), "interception is only for transparent interception"),
    (_workload(applicationAddress="10.0.0.7"), "applicationAddress must differ from address"),
    (_workload(ports=[{"port": 1, "number": 1}]), "spec.ports[0]"),
    (_workload(ports=[{"name": "x"}]), "spec.ports[0]"),
    (_target({"kind": "TCPRoute", "name": "a", "matches": ["x"]}), "a TCPRoute does not have named matches"),
    (_group("a", "a"), "Duplicate value"),
    (
        _config(sidecar={"tlsMinProtocolVersion": "TLSv1_3", "tlsMaxProtocolVersion": "TLSv1_2"}),
        "tlsMinProtocolVersion must not be higher than tlsMaxProtocolVersion",
    ),
    (_config(sidecar={"tlsMaxProtocolVersion": "TLSv1_1"}), "tlsMaxProtocolVersion"),
    (_config(certificate={"serviceCertValidityDuration": "500ms"}), "must be a duration from 1s to 87600h"),
    (_config(certificate={"serviceCertValidityDuration": "87601h"}), "must be a duration from 1s to 87600h"),
]
RIGHT = [
    _workload(interception={}, upstreams=[]),
    _workload(interception={}),
    _workload(applicationAddress="127.0.0.1", upstreams=[UPSTREAM]),
    _target(
        {"kind": "TCPRoute", "name": "a", "matches": []},
        {"kind": "HTTPRouteGroup", "name": "a", "matches": ["x"]},
    ),
    _group("a", "b"),
    _config(sidecar={"tlsMinProtocolVersion": "", "tlsMaxProtocolVersion": "TLSv1_2"}),
    _config(sidecar={"tlsMinProtocolVersion": "TLS_AUTO"}),
    _config(certificate={"serviceCertValidityDuration": "1h30m"}),
]


@pytest.mark.parametrize(
    ("document", "said"), RULES, ids=[f"{item['kind']}-{text[:20]}" for item, text in RULES]
)
def test_invalid_combination_of_fields_is_refused(
    asking: Asking, document: dict[str, Any], said: str
) -> None:
    """The API server and the reader refuse it."""
    answer = asking.create(document, DRY)
    assert (answer.status, said in answer.message) == (422, True), answer.message
    assert [problem for problem in read(document, ORIGIN).problems if problem.severity is Severity.ERROR]


@pytest.mark.parametrize("document", RIGHT, ids=[f"{each['kind']}-{n}" for n, each in enumerate(RIGHT)])
def test_valid_combination_of_fields_is_accepted(asking: Asking, document: dict[str, Any]) -> None:
    """The API server and the reader accept it."""
    answer = asking.create(document, DRY)
    assert answer.status == 201, answer.message
    assert not [problem for problem in read(document, ORIGIN).problems if problem.severity is Severity.ERROR]


def test_unknown_field_is_refused_by_strict_validation_and_otherwise_warned(asking: Asking) -> None:
    """Strict validation is what kubectl uses. Other clients get a warning, and the field is dropped."""
    wrong = _target({"kind": "HTTPRouteGroup", "name": "a", "matchs": ["x"]})
    strict = asking.create(wrong, DRY)
    assert (strict.status, 'unknown field "spec.rules[0].matchs"' in strict.message) == (400, True)
    lax = asking.create(wrong, "dryRun=All")
    assert lax.status == 201
    assert any(r"unknown field \"spec.rules[0].matchs\"" in warning for warning in lax.warnings)


def test_large_objects_are_accepted(asking: Asking) -> None:
    """With thousands of entries, no validation rule exceeds the API server's cost limit."""
    target = _target(*({"kind": "TCPRoute", "name": f"route-{number}"} for number in range(5000)))
    group = _group(*(f"match-{number}" for number in range(5000)))
    workload = _workload(
        ports=[{"port": number} for number in range(1, 5001)], applicationAddress="127.0.0.1"
    )
    for document in (target, group, workload):
        answer = asking.create(document, DRY)
        assert answer.status == 201, answer.message


def test_status_is_a_separate_subresource(asking: Asking) -> None:
    """A write of the object does not change the status, and the other way round."""
    condition = {
        "type": "Accepted",
        "status": "True",
        "lastTransitionTime": "2026-11-22T10:00:00Z",
        "reason": "Accepted",
        "message": "it is read",
    }
    given = _workload()
    assert asking.create({**given, "status": {"conditions": [condition]}}).status == 201
    try:
        assert "status" not in asking("GET", path(given)).body
        applied = {**given, "spec": {"address": "10.0.0.9"}, "status": {"conditions": [condition]}}
        at = f"{path(given)}/status?fieldManager=test&force=true"
        assert asking("PATCH", at, applied, "application/apply-patch+yaml").status == 200
        body = asking("GET", path(given)).body
        assert (body["status"]["conditions"], body["spec"]["address"]) == ([condition], "10.0.0.7")
    finally:
        asking("DELETE", path(given))


def _table(asking: Asking, at: str) -> Mapping[str, Any]:
    body = asking("GET", at, accept=TABLE).body
    names = (column_definition["name"] for column_definition in body["columnDefinitions"])
    return dict(zip(names, body["rows"][0]["cells"], strict=True))


def test_printed_columns_describe_the_object(asking: Asking) -> None:
    """The columns are those of the object's version."""
    (example,) = (item for item in DESCRIBED[1].examples if str(item["apiVersion"]).endswith("v1alpha3"))
    given = dict(example)
    assert asking.create(given).status == 201
    try:
        cells = _table(asking, path(given))
    finally:
        asking("DELETE", path(given))
    assert cells["Destination"] == "bookstore"
    assert "bookbuyer" in str(cells["Sources"])
    assert cells.keys() == {"Name", "Destination", "Sources", "Rules", "Age"}


def test_kinds_have_short_names_and_categories(asking: Asking) -> None:
    """For SMI's kinds they are the same as in SMI's own definitions."""
    result = {}
    for group in sorted({described_kind.kind.group for described_kind in DESCRIBED}):
        preferred = asking("GET", f"/apis/{group}").body["preferredVersion"]["groupVersion"]
        for resource in asking("GET", f"/apis/{preferred}").body["resources"]:
            if "/" not in resource["name"]:
                result[resource["kind"]] = (preferred, resource["shortNames"], resource["categories"])
    assert result["TrafficTarget"] == ("access.smi-spec.io/v1alpha3", ["tt"], ["meshwright", "smi"])
    assert result["HTTPRouteGroup"] == ("specs.smi-spec.io/v1alpha4", ["htr"], ["meshwright", "smi"])
    assert result["TCPRoute"][1] == ["tr"]
    assert result["TrafficSplit"][1] == ["ts"]
    assert result["MeshConfig"] == ("config.openservicemesh.io/v1alpha3", ["meshconfig"], ["meshwright"])
    assert result["Workload"] == ("meshwright.dev/v1alpha1", ["wl"], ["meshwright"])
