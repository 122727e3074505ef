"""Tests that an independent validator of the JSON Schemas agrees with the readers."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from meshwright.cli.offline import reference
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Severity
from meshwright.providers.text.documents import documents
from meshwright.specs.manifest import split_api_version
from meshwright.specs.reader import read
from meshwright.specs.reference import probing as asking
from meshwright.specs.reference import recording
from meshwright.specs.reference.recording import Choice, Record
from meshwright.specs.reference.schema import Schema, of_all, of_kind
from meshwright.specs.reference.shapes import DescribedKind, Document, walked
from tests.tools.forked_cli import ROOT
from tests.tools.hypothesis_profiles import examples
from tests.unit.specs.reference.document_places import DESCRIBED, instances

FILES = sorted(
    item
    for folder, pattern in (
        ("docs/examples", "*.yaml"),
        ("demo/manifests", "**/*.yaml"),
        ("tests/golden", "*/mesh.yaml"),
        ("tests/unit/specs", "bookstore.yaml"),
    )
    for item in (ROOT / folder).glob(pattern)
)
PROBES: tuple[object, ...] = (
    *(None, True, 0, 7, -1, 70000, 1.5, "", "x y", "ok", "true", "7"),
    *([], [7], ["x"], [""], [{}], {}, {"a": "b"}, {"a": 1}),
)
OF_EACH_SHAPE: tuple[object, ...] = (None, True, 7, "", "ok", [], ["x"], [{}], {}, {"a": "b"})
"""Probes that lead a reader to ask for different fields; values of one type beside them do not."""
GONE, MORE = object(), object()
LONG = examples(1) > 1
"""Whether each place is probed with all probes (`make fuzz`); otherwise with every STEP-th of them."""
STEP = 1 if LONG else 5

OF_GRPC_FILTERS = (
    "requestHeaderModifier",
    "responseHeaderModifier",
    "requestMirror",
    "requestMirror.backendRef.port",
    "requestMirror.fraction.numerator",
)
OF_FILTERS = {
    "GRPCRoute": OF_GRPC_FILTERS,
    "HTTPRoute": (
        *OF_GRPC_FILTERS,
        "urlRewrite",
        "urlRewrite.path.replaceFullPath",
        "urlRewrite.path.replacePrefixMatch",
    ),
}

ONLY_THE_READER = {
    ("MeshConfig", "spec.traffic.inboundExternalAuthorization.enable"),  # needs other fields beside it
    ("MeshConfig", "spec.certificate.ingressGateway.subjectAltNames"),  # at least one
    ("MeshConfig", "spec.traffic.inboundExternalAuthorization.address"),  # letters and dots that are no name
    ("UpstreamTrafficSetting", "spec.rateLimit.global.tcp.rateLimitService.host"),  # likewise
    ("ExtensionService", "spec.host"),
    ("UpstreamTrafficSetting", "spec.rateLimit.global.http.rateLimitService.host"),  # likewise
    ("MeshConfig", "spec.observability.tracing.address"),
    ("Workload", "spec.upstreams[]"),  # two listeners on one address and port
    ("Workload", "spec.gateway"),  # beside fields of an application
    ("TrafficTarget", "spec.destination.namespace"),  # must be the object's own
    ("TrafficTarget", "destination.namespace"),
    ("Retry", "spec.source.namespace"),
    ("HTTPRouteGroup", "spec.matches[].headers.user-agent"),  # regular expressions of RE2
    ("HTTPRouteGroup", "spec.matches[].headers[].client-app"),
    ("HTTPRouteGroup", "matches[].headers.user-agent"),
    ("HTTPRouteGroup", "matches[].headers[].client-app"),
    ("IngressBackend", "spec.sources[].name"),  # its form depends on the kind of source
    ("MutualTLS", "spec.plaintext.sources[].name"),  # likewise
    ("MutualTLS", "spec.plaintext.sources[].namespace"),
    ("MutualTLS", "spec.plaintext"),  # has no effect beside Strict
    ("ExternalAuthorization", "spec.host"),  # letters and dots that are no name; absent where disabled
    ("ExternalAuthorization", "spec.port"),  # likewise absent
    ("ExternalAuthorization", "spec.ports"),  # a list that is empty
    ("MutualTLS", "spec.ports"),  # a list that is empty
    ("IngressBackend", "spec.sources[].namespace"),  # required for a Service, and forbidden otherwise
    ("UpstreamPolicy", "spec.loadBalancing.hash"),  # for one policy only, and exactly one key
    ("UpstreamPolicy", "spec.healthCheck"),  # exactly one kind of health check
    ("Service", "metadata.annotations.meshwright.dev/dns"),  # several names in one text, and ports elsewhere
    ("Service", "metadata.annotations.meshwright.dev/dns-srv"),
    ("Pod", "metadata.labels.meshwright.dev/proxy-uuid"),  # a label among others
    ("UpstreamTrafficSetting", "spec.rateLimit.global.http.descriptors[].entries[]"),  # exactly one of four
    (
        "UpstreamTrafficSetting",
        "spec.rateLimit.global.http.descriptors[].entries[].headerValueMatch.headers[]",
    ),
    (
        "UpstreamTrafficSetting",
        "spec.httpRoutes[].rateLimit.global.descriptors[].entries[]",
    ),  # exactly one of four
    (
        "UpstreamTrafficSetting",
        "spec.httpRoutes[].rateLimit.global.descriptors[].entries[].headerValueMatch.headers[]",
    ),
    *(
        ("ClientTrafficPolicy", f"spec.{place}")
        for place in (
            "headers.maxSize",  # the least and the greatest size
            "connections.bufferSize",
            "http2.initialStreamWindowSize",
            "http2.initialConnectionWindowSize",
            "rateLimit.global.http.rateLimitService.host",  # letters and dots that are no name
            "rateLimit.global.tcp.rateLimitService.host",
            "rateLimit.global.http.descriptors[].entries[]",  # exactly one of four
            "rateLimit.global.http.descriptors[].entries[].headerValueMatch.headers[]",
        )
    ),
    # A filter has the one field of its type, and a prefix is replaced only beside one prefix match.
    *(
        (kind, f"{parent}[].filters[].{field}")
        for kind, fields in OF_FILTERS.items()
        for parent in ("spec.rules", "spec.rules[].backendRefs")
        for field in fields
    ),
    ("HTTPRoute", "spec.rules[].filters[].cors"),
    ("HTTPRoute", "spec.rules[].filters[].requestRedirect"),
    ("HTTPRoute", "spec.rules[].filters[].requestRedirect.path.replaceFullPath"),
    ("HTTPRoute", "spec.rules[].filters[].requestRedirect.path.replacePrefixMatch"),
    ("HTTPRoute", "spec.rules[].filters"),
    ("HTTPRoute", "spec.rules[].backendRefs"),
    ("HTTPRoute", "spec.rules[].matches[].path.value"),  # its form depends on the type
    ("GRPCRoute", "spec.rules[].matches[].method"),  # a service, a method or both
    ("GRPCRoute", "spec.rules[].matches[].method.method"),
    ("GRPCRoute", "spec.rules[].matches[].method.service"),
    ("Gateway", "spec.listeners[].tls"),  # depends on the protocol
    ("Gateway", "spec.listeners[].tls.certificateRefs"),  # for one mode only
    ("ListenerSet", "spec.listeners[].tls.certificateRefs"),
    ("BackendTLSPolicy", "spec.validation.caCertificateRefs"),  # without a well-known set
    ("BackendTLSPolicy", "spec.validation.subjectAltNames[].hostname"),  # depends on the type
    ("BackendTLSPolicy", "spec.validation.subjectAltNames[].uri"),
    ("Gateway", "spec.addresses[].value"),  # its form depends on the type
    ("Gateway", "spec.infrastructure.labels.team"),  # the value of a label
    *(
        (kind, "spec.rules[].backendRefs[].port")  # only a Service needs a port
        for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute.gateway.networking.k8s.io")
    ),
}
"""Where the reader refuses what no schema can, or this one does not: by the place that the reader names."""


def _validator(schema: Any) -> Draft202012Validator:
    meta.validate(schema)
    return Draft202012Validator(schema, validate_formats=True)


@functools.cache
def schema_of_all() -> Schema:
    """Return the schema of all kinds."""
    return of_all(reference.described())


@pytest.fixture(scope="module")
def of_any() -> Draft202012Validator:
    """Return a validator of documents of any kind."""
    return _validator(schema_of_all())


def _refused(document: object) -> list[str]:
    """Return the fields for which a reader refuses a document."""
    problems = read(document, FromSource("test")).problems
    return [problem.field for problem in problems if problem.severity is Severity.ERROR]


def _unread(document: object) -> bool:
    """Return whether the object is understood but unused, so that its other fields are not checked."""
    reading = read(document, FromSource("test"))
    return not reading.objects or any(problem.code == "MW1020" for problem in reading.problems)


@pytest.mark.parametrize("path", FILES, ids=lambda item: str(item.relative_to(ROOT)))
def test_every_valid_manifest_of_the_repository_fits_the_schema(
    path: Path, of_any: Draft202012Validator
) -> None:
    """Documents that the reader refuses are left out; some golden ones are invalid on purpose."""
    result = [
        document.value for document in documents(path.read_text("utf-8")) if not _refused(document.value)
    ]
    assert result
    assert [error.message for item in result for error in of_any.iter_errors(item)] == []


def _probed(
    described: DescribedKind, probes: tuple[object, ...] = PROBES
) -> Iterator[tuple[Any, str, object]]:
    """Yield each example with one change, the changed place, and its new value.

    Each place is probed once for each version and each set of neighbouring fields, in the first such example,
    with every STEP-th of the probes; consecutive places begin with different probes.
    Rules of a route are probed one by one, as a reader takes them, because the examples have many.
    """
    seen = set[tuple[object, str, frozenset[object]]]()
    for example in itertools.chain(*map(_rule_by_rule, described.examples)):
        for document, place, holder, key in instances(example):
            if place in ("apiVersion", "kind"):
                continue
            beside = frozenset(holder) if isinstance(holder, dict) else frozenset[object]()
            probed = (example["apiVersion"], place, beside)
            if probed in seen:
                continue
            seen.add(probed)
            was = holder[key]
            for probe in (*probes, GONE, MORE)[len(seen) % STEP :: STEP]:
                if probe is GONE and isinstance(holder, dict):
                    del holder[key]
                elif probe is MORE and isinstance(was, dict):
                    was["unheard-of"] = 1
                elif probe is not GONE and probe is not MORE:
                    holder[key] = probe
                yield document, place, probe
                holder[key] = was
                if probe is MORE and isinstance(was, dict):
                    del was["unheard-of"]


def _rule_by_rule(example: Document) -> Iterator[Document]:
    """Yield a route once for each of its rules, with this rule alone; other documents as they are."""
    spec = example.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(rules, list):
        yield example
        return
    for rule in rules:
        yield {**example, "spec": {**spec, "rules": [rule]}}


def _bare(field: str) -> str:
    """Return the field of a problem as a place, without indexes, and with a dot before annotations."""
    parts = ["[]" if part.isdigit() else f".{part}" for part in itertools.chain(*_split(field))]
    return "".join(parts).removeprefix(".")


def _split(field: str) -> Iterator[list[str]]:
    for number, part in enumerate(field.split("[")):
        inside, bracket, rest = part.partition("]")
        yield [part] if not number else [inside, *([rest.removeprefix(".")] if bracket and rest else [])]


@pytest.mark.fuzzed
@DESCRIBED
def test_schema_and_reader_refuse_the_same_documents(described: DescribedKind) -> None:
    """Each value of each example is replaced by values of other types or ranges, or removed.

    Exceptions: a reader uses the default for an empty text that the schema refuses, and the places in
    ONLY_THE_READER are refused by the reader alone. Every one of these places is found in the long form.
    """
    validator = _validator(of_kind(described))
    choices = {
        field.place
        for shape in described.shapes
        for field in walked(shape.body)
        if any(isinstance(item, Choice) for item in field.types)
    }
    wrongly, missed, compared = [], set(), Counter[bool]()
    for document, place, probe in _probed(described):
        valid, refused = validator.is_valid(document), _refused(document)
        compared[valid] += 1
        if valid and refused:
            missed.add((str(described.kind), _bare(refused[0])))
        elif not valid and not refused and not _unread(document) and not (probe == "" and place in choices):
            wrongly.append((place, probe))
    assert wrongly == []
    expected = {item for item in ONLY_THE_READER if item[0] == str(described.kind)}
    assert missed - expected == set()
    assert expected == missed or not LONG
    assert min(compared[True], compared[False]) > 0


def test_schema_accepts_null_for_omitted_fields() -> None:
    """Every field that an example does not have is added as null."""
    wrongly, looked = set[str](), 0
    for described in reference.described():
        validator = _validator(of_kind(described))
        by_parent: dict[str, set[str]] = {}
        for field in (item for shape in described.shapes for item in walked(shape.body)):
            parent = field.place.removesuffix(field.name).removesuffix(".")
            by_parent.setdefault(parent, set()).add(field.name)
        for document, place, holder, key in itertools.chain(*map(instances, described.examples)):
            there = holder[key]
            absent = by_parent.get(place, set()) - there.keys() if isinstance(there, dict) else set()
            for name in absent:
                there[name] = None
                looked += 1
                if not _refused(document) and not validator.is_valid(document):
                    wrongly.add(f"{described.kind.name} {place}.{name}")
                del there[name]
    assert wrongly == set()
    assert looked > 50


@pytest.mark.fuzzed
@DESCRIBED
def test_reader_never_reads_an_undocumented_field(described: DescribedKind) -> None:
    """The values of the examples are varied, because a value may lead the reader to other fields."""
    answer = {
        place
        for shape in described.shapes
        for field in walked(shape.body)
        for place in (
            field.place,
            *(f"{field.place}.{name}" for name in field.inside.untouched),
            *(f"{field.place}[].{name}" for name in field.items.untouched),
        )
    }
    record = Record()
    for document, _, _ in _probed(described, PROBES if LONG else OF_EACH_SHAPE):
        if not isinstance(document.get("metadata"), dict):
            continue
        for shape in described.shapes:
            version = split_api_version(shape.api_versions[-1])[1]
            asking._refusals(described.kind, version, document, record)
    asked = {recording.place(parent, name) for parent, names in record.fields.items() for name in names}
    heads = {"apiVersion", "kind", "status"}
    beside = {field for shape in described.shapes for field in shape.body.untouched}
    assert asked <= answer | heads | beside


@DESCRIBED
def test_schema_of_all_kinds_selects_the_schema_of_a_kind(
    described: DescribedKind, of_any: Draft202012Validator
) -> None:
    """It is selected by kind and group, alone and in a List."""
    for example in described.examples:
        listed = {"apiVersion": "v1", "kind": "List", "items": [example]}
        assert (of_any.is_valid(example), of_any.is_valid(listed)) == (True, True)
        nameless = {**example, "metadata": {}}
        listed = {"apiVersion": "v1", "kind": "List", "items": [nameless]}
        assert (of_any.is_valid(nameless), of_any.is_valid(listed)) == (False, False)


def _patterns(schema: object) -> Iterator[str]:
    match schema:
        case dict():
            for name, item in schema.items():
                if name == "pattern" and isinstance(item, str):
                    yield item
                yield from _patterns(item)
        case list():
            for item in schema:
                yield from _patterns(item)
        case _:
            pass


def test_schema_patterns_are_valid_in_javascript() -> None:
    """Editors use the flag u (ECMA-262, IdentityEscape), with which other escapes are errors."""
    patterns = set(_patterns(schema_of_all()))
    assert len(patterns) > 10
    escaped = {item for pattern in patterns for item in re.findall(r"\\(.)", pattern)}
    assert escaped <= set("^$\\.*+?()[]{}|/dDsSwW")
    assert not [item for item in patterns if "(?P" in item or "(?<" in item]


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("access.smi-spec.io/v1alpha3", "TraficTarget", False),
        ("meshwright.dev/v1alpha1", "Workloads", False),
        ("access.smi-spec.io/v1", "TrafficTarget", False),
        ("specs.smi-spec.io/v1alpha4", "UDPRoute", False),
        ("v1", "Servce", False),
        ("v1", "Secret", True),
        ("v1", "ServiceList", True),
        ("apps/v1", "ControllerRevision", True),
        ("policy.openservicemesh.io/v1alpha1", "AccessCert", True),
        ("policy.openservicemesh.io/v1alpha1", "Egres", False),
        ("example.com/v1", "Anything", True),
    ],
)
def test_schema_and_reader_refuse_the_same_kinds(
    api_version: str, kind: str, expected: bool, of_any: Draft202012Validator
) -> None:
    """Misspelt kinds and unread versions are refused, and kinds of other projects are accepted."""
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "items": []}
    assert (of_any.is_valid(document), not _refused(document)) == (expected, expected)
