"""Tests of gateways, classes and ListenerSets that the CRDs refuse or accept: a file gets the same verdict.

The cases are from the schemas and CEL rules of release 1.7. The tests with a real API server compare the
verdicts.
"""

from typing import Any

import pytest

from meshwright.specs.reader import read
from tests.unit.specs.gateway.manifests import IN_FILE, faults, manifest

HTTP = "{name: http, port: 80, protocol: HTTP}"
CA = "{group: '', kind: ConfigMap, name: ca}"


def _many(form: str, count: int) -> str:
    return ", ".join(form.replace("NUMBER", str(number)) for number in range(1, count + 1))


def of_namespaces(namespaces: str) -> str:
    """Return a listener that allows routes of these namespaces."""
    return f"{{name: a, port: 80, protocol: HTTP, allowedRoutes: {{namespaces: {namespaces}}}}}"


REFUSED_LISTENERS = [
    ("{port: 80, protocol: HTTP}", "listeners[0].name"),
    ("{name: A, port: 80, protocol: HTTP}", "listeners[0].name"),
    ("{name: '', port: 80, protocol: HTTP}", "listeners[0].name"),
    (f"{{name: {'a' * 254}, port: 80, protocol: HTTP}}", "listeners[0].name"),
    ("{name: a, protocol: HTTP}", "listeners[0].port"),
    ("{name: a, port: 0, protocol: HTTP}", "listeners[0].port"),
    ("{name: a, port: 65536, protocol: HTTP}", "listeners[0].port"),
    ("{name: a, port: '80', protocol: HTTP}", "listeners[0].port"),
    ("{name: a, port: 80}", "listeners[0].protocol"),
    ("{name: a, port: 80, protocol: ''}", "listeners[0].protocol"),
    ("{name: a, port: 80, protocol: a_b}", "listeners[0].protocol"),
    ("{name: a, port: 80, protocol: example.com/}", "listeners[0].protocol"),
    (f"{{name: a, port: 80, protocol: {'a' * 256}}}", "listeners[0].protocol"),
    ("{name: a, port: 80, protocol: HTTP, hostname: ''}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: HTTP, hostname: A.b}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: HTTP, hostname: '*'}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: HTTP, hostname: a.*}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: TCP, hostname: a}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: UDP, hostname: a}", "listeners[0].hostname"),
    ("{name: a, port: 80, protocol: HTTP, tls: {certificateRefs: [{name: b}]}}", "listeners[0].tls"),
    ("{name: a, port: 80, protocol: TCP, tls: {mode: Passthrough}}", "listeners[0].tls"),
    ("{name: a, port: 80, protocol: UDP, tls: {mode: Passthrough}}", "listeners[0].tls"),
    ("{name: a, port: 80, protocol: HTTPS, tls: {mode: Passthrough}}", "listeners[0].tls.mode"),
    ("{name: a, port: 80, protocol: TLS}", "listeners[0].tls"),
    ("{name: a, port: 80, protocol: HTTPS, tls: {}}", "listeners[0].tls.certificateRefs"),
    ("{name: a, port: 80, protocol: TLS, tls: {mode: Terminate}}", "listeners[0].tls.certificateRefs"),
    (
        "{name: a, port: 80, protocol: HTTPS, tls: {certificateRefs: [], options: {}}}",
        "listeners[0].tls.certificateRefs",
    ),
    ("{name: a, port: 80, protocol: HTTPS, tls: {mode: '', options: {a: b}}}", "listeners[0].tls.mode"),
    ("{name: a, port: 80, protocol: HTTPS, tls: {mode: Both, options: {a: b}}}", "listeners[0].tls.mode"),
    (
        "{name: a, port: 80, protocol: HTTPS, tls: {certificateRefs: [{kind: Secret}]}}",
        "listeners[0].tls.certificateRefs[0].name",
    ),
    (
        "{name: a, port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: a, namespace: a.b}]}}",
        "listeners[0].tls.certificateRefs[0].namespace",
    ),
    (
        f"{{name: a, port: 80, protocol: HTTPS, tls: {{certificateRefs: [{_many('{name: a}', 65)}]}}}}",
        "listeners[0].tls.certificateRefs",
    ),
    (
        f"{{name: a, port: 80, protocol: HTTPS, tls: {{options: {{{_many('aNUMBER: b', 17)}}}}}}}",
        "listeners[0].tls.options",
    ),
    (
        f"{{name: a, port: 80, protocol: HTTPS, tls: {{options: {{a: {'b' * 4097}}}}}}}",
        "listeners[0].tls.options[a]",
    ),
    (
        of_namespaces("{from: None}"),
        "listeners[0].allowedRoutes.namespaces.from",
    ),
    (
        of_namespaces("{from: ''}"),
        "listeners[0].allowedRoutes.namespaces.from",
    ),
    (
        of_namespaces("{selector: {matchExpressions: [{key: a}]}}"),
        "listeners[0].allowedRoutes.namespaces.selector.matchExpressions[0].operator",
    ),
    (
        of_namespaces("{selector: {matchExpressions: [{operator: Exists}]}}"),
        "listeners[0].allowedRoutes.namespaces.selector.matchExpressions[0].key",
    ),
    (
        of_namespaces("{selector: {matchLabels: {a: 1}}}"),
        "listeners[0].allowedRoutes.namespaces.selector.matchLabels[a]",
    ),
    (
        "{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{group: a}]}}",
        "listeners[0].allowedRoutes.kinds[0].kind",
    ),
    (
        "{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: a_b}]}}",
        "listeners[0].allowedRoutes.kinds[0].kind",
    ),
    (
        f"{{name: a, port: 80, protocol: HTTP, allowedRoutes: {{kinds: [{_many('{kind: A}', 9)}]}}}}",
        "listeners[0].allowedRoutes.kinds",
    ),
    ("{name: a, port: 80, protocol: HTTP, filters: {requests: []}}", "listeners[0].filters"),
    ("{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}", "listeners[1].name"),
    ("{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}", "listeners[1]"),
    (
        _many("{name: aNUMBER, port: 80, protocol: HTTP, hostname: a.b}", 2),
        "listeners[1]",
    ),
    ("", "listeners"),
    (_many("{name: aNUMBER, port: NUMBER, protocol: HTTP}", 65), "listeners"),
]
"""Listeners that the CRDs refuse, with the first field that is wrong."""

REFUSED_FIELDS = [
    ("gatewayClassName: ''", "gatewayClassName"),
    (f"gatewayClassName: {'a' * 254}", "gatewayClassName"),
    ("addresses: [{value: pool}]", "addresses[0].value"),
    ("addresses: [{value: 10.0.0.256}]", "addresses[0].value"),
    ("addresses: [{value: 'fe80::1%eth0'}]", "addresses[0].value"),
    ("addresses: [{type: '', value: 10.0.0.1}]", "addresses[0].type"),
    ("addresses: [{type: Pool, value: a}]", "addresses[0].type"),
    ("addresses: [{type: Hostname, value: A}]", "addresses[0].value"),
    ("addresses: [{type: Hostname, value: ''}]", "addresses[0].value"),
    (f"addresses: [{{type: NamedAddress, value: {'a' * 254}}}]", "addresses[0].value"),
    ("addresses: [{value: 10.0.0.1}, {type: IPAddress, value: 10.0.0.1}]", "addresses[1].value"),
    ("addresses: [{type: Hostname, value: a}, {type: Hostname, value: a}]", "addresses[1].value"),
    (f"addresses: [{_many('{value: 10.0.0.NUMBER}', 17)}]", "addresses"),
    ("infrastructure: {labels: {a/b/c: d}}", "infrastructure.labels[a/b/c]"),
    ("infrastructure: {labels: {A.b/c: d}}", "infrastructure.labels[A.b/c]"),
    ("infrastructure: {labels: {a/: d}}", "infrastructure.labels[a/]"),
    (f"infrastructure: {{labels: {{{'a' * 64}: d}}}}", f"infrastructure.labels[{'a' * 60}]"),
    (f"infrastructure: {{labels: {{? {'a' * 253}/b : d}}}}", f"infrastructure.labels[{'a' * 60}]"),
    ("infrastructure: {labels: {a: b c}}", "infrastructure.labels[a]"),
    (f"infrastructure: {{labels: {{a: {'b' * 64}}}}}", "infrastructure.labels[a]"),
    (f"infrastructure: {{labels: {{{_many('aNUMBER: b', 9)}}}}}", "infrastructure.labels"),
    ("infrastructure: {annotations: {-a: b}}", "infrastructure.annotations[-a]"),
    (f"infrastructure: {{annotations: {{a: {'b' * 4097}}}}}", "infrastructure.annotations[a]"),
    (f"infrastructure: {{annotations: {{{_many('aNUMBER: b', 17)}}}}}", "infrastructure.annotations"),
    ("infrastructure: {parametersRef: {kind: A, name: a}}", "infrastructure.parametersRef.group"),
    (
        "infrastructure: {parametersRef: {group: '', kind: A, name: a, namespace: b}}",
        "infrastructure.parametersRef.namespace",
    ),
    ("allowedListeners: {namespaces: {from: Some}}", "allowedListeners.namespaces.from"),
    ("tls: {frontend: {}}", "tls.frontend.default"),
    (
        "tls: {frontend: {default: {validation: {}}}}",
        "tls.frontend.default.validation.caCertificateRefs",
    ),
    (
        "tls: {frontend: {default: {validation: {caCertificateRefs: []}}}}",
        "tls.frontend.default.validation.caCertificateRefs",
    ),
    (
        f"tls: {{frontend: {{default: {{validation: {{caCertificateRefs: [{_many(CA, 17)}]}}}}}}}}",
        "tls.frontend.default.validation.caCertificateRefs",
    ),
    (
        "tls: {frontend: {default: {validation: {caCertificateRefs: [{kind: ConfigMap, name: ca}]}}}}",
        "tls.frontend.default.validation.caCertificateRefs[0].group",
    ),
    (
        f"tls: {{frontend: {{default: {{validation: {{caCertificateRefs: [{CA}], mode: Never}}}}}}}}",
        "tls.frontend.default.validation.mode",
    ),
    ("tls: {frontend: {default: {}, perPort: [{tls: {}}]}}", "tls.frontend.perPort[0].port"),
    ("tls: {frontend: {default: {}, perPort: [{port: 1}]}}", "tls.frontend.perPort[0].tls"),
    (
        "tls: {frontend: {default: {}, perPort: [{port: 1, tls: {}}, {port: 1, tls: {}}]}}",
        "tls.frontend.perPort[1].port",
    ),
    ("tls: {backend: {clientCertificateRef: {}}}", "tls.backend.clientCertificateRef.name"),
    ("tls: {backend: {resolvedRefs: 1}}", "tls.backend.resolvedRefs"),
    ("hostname: a", "hostname"),
]
"""Fields of `spec` beside a good listener that the CRDs refuse, with the first field that is wrong."""

ACCEPTED_LISTENERS = [
    "{name: a.b, port: 65535, protocol: example.com/custom}",
    "{name: a, port: 1, protocol: '%% a/b'}",
    "{name: a, port: 1, protocol: Http}",
    "{name: a, port: 1, protocol: HTTPS}",
    "{name: a, port: 1, protocol: HTTPS, tls: {options: {any key: ''}}}",
    "{name: a, port: 1, protocol: TLS, tls: {certificateRefs: [{group: x.y, kind: Vault, name: 'A b'}]}}",
    "{name: a, port: 1, protocol: TLS, tls: {mode: Passthrough, certificateRefs: []}}",
    "{name: a, port: 1, protocol: example.com/custom, tls: {mode: Passthrough}, hostname: '*.a'}",
    "{name: a, port: 1, protocol: HTTP, tls: null, hostname: null, allowedRoutes: null}",
    "{name: a, port: 1, protocol: HTTP, allowedRoutes: {kinds: []}}",
    "{name: a, port: 1, protocol: HTTP, allowedRoutes: {kinds: [{group: '', kind: A}, {kind: A}]}}",
    "{name: a, port: 1, protocol: HTTP, allowedRoutes: {kinds: [{kind: A}, {kind: A}]}}",
    "{name: a, port: 1, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {}}}}",
    "{name: a, port: 1, protocol: HTTP}, {name: b, port: 1, protocol: HTTPS}",
    "{name: a, port: 1, protocol: HTTP}, {name: b, port: 1, protocol: HTTP, hostname: a}",
    "{name: a, port: 1, protocol: TCP}, {name: b, port: 1, protocol: UDP}",
    _many("{name: aNUMBER, port: NUMBER, protocol: HTTP}", 64),
]
"""Listeners that the CRDs accept."""

ACCEPTED_FIELDS = [
    "addresses: [{}, {}]",
    "addresses: [{type: Hostname}, {type: Hostname, value: '*.a'}]",
    "addresses: [{value: '2001:db8::1'}, {value: '::ffff:10.0.0.1'}]",
    "addresses: [{value: 010.0.0.01}, {value: '::ffff:10.0.0.01'}]",
    "addresses: [{type: NamedAddress, value: 'A b'}, {type: NamedAddress, value: 'A b'}]",
    "addresses: [{type: Hostnames, value: 'A b'}, {type: My IPAddress}, {type: '% a/b'}]",
    "addresses: [{value: 10.0.0.1}, {type: Hostname, value: 10.0.0.1}]",
    "infrastructure: {labels: {a.b/C_d: '', e: F-g}, annotations: {a: 'any text'}}",
    "infrastructure: {labels: {a: null}}",
    f"infrastructure: {{labels: {{? {'a' * 252}/b : d}}}}",
    "allowedListeners: {namespaces: {from: Selector}}",
    "allowedListeners: {namespaces: {from: All, selector: {matchExpressions: [{key: '', operator: ''}]}}}",
    "tls: {}",
    "tls: {frontend: {default: {}}, backend: {}}",
    f"tls: {{frontend: {{default: {{validation: {{caCertificateRefs: [{CA}]}}}}, perPort: []}}}}",
    "tls: {frontend: {default: {}, perPort: [{port: 1, tls: {}}, {port: 2, tls: {}}]}}",
    "tls: {backend: {clientCertificateRef: {name: a}}}",
]
"""Fields of `spec` beside a good listener that the CRDs accept."""

REFUSED_CLASSES = [
    ("{}", "controllerName"),
    ("{controllerName: ''}", "controllerName"),
    ("{controllerName: example.com}", "controllerName"),
    ("{controllerName: Example.com/a}", "controllerName"),
    ("{controllerName: 'example.com/a b'}", "controllerName"),
    (f"{{controllerName: a/{'b' * 252}}}", "controllerName"),
    (f"{{controllerName: a/b, description: {'a' * 65}}}", "description"),
    ("{controllerName: a/b, parametersRef: {}}", "parametersRef.group"),
    ("{controllerName: a/b, parametersRef: {group: '', kind: A, name: ''}}", "parametersRef.name"),
    ("{controllerName: a/b, controller: a/b}", "controller"),
]
"""Classes that the CRDs refuse, with the first field that is wrong."""

ACCEPTED_CLASSES = [
    '{controllerName: "a.b/C-d/._~%!$&\'()*+,;=:"}',
    "{controllerName: a/b, description: ''}",
    "{controllerName: a/b, parametersRef: {group: a.b, kind: A, name: 'any text'}}",
]
"""Classes that the CRDs accept."""


REFUSED_SETS = [
    ("{}", "parentRef.name"),
    ("{name: ''}", "parentRef.name"),
    (f"{{name: {'a' * 254}}}", "parentRef.name"),
    ("{name: a, namespace: a.b}", "parentRef.namespace"),
    ("{name: a, kind: ''}", "parentRef.kind"),
    ("{name: a, kind: a_b}", "parentRef.kind"),
    ("{name: a, group: A}", "parentRef.group"),
    ("{name: a, sectionName: b}", "parentRef.sectionName"),
]
"""Parents of ListenerSets that the CRD refuses, with the first field that is wrong."""

ACCEPTED_SETS = [
    "{name: 'A b'}",
    "{name: a, namespace: b, group: gateway.networking.k8s.io, kind: Gateway}",
    "{name: a, group: '', kind: Service}",
]
"""Parents of ListenerSets that the CRD accepts; only a Gateway takes listeners."""


def set_with_listeners(listeners: str) -> dict[str, Any]:
    """Return the manifest of a ListenerSet with these listeners."""
    return manifest("ListenerSet", f"{{parentRef: {{name: edge}}, listeners: [{listeners}]}}")


def set_with_parent(parent: str) -> dict[str, Any]:
    """Return the manifest of a ListenerSet with one listener and this parent."""
    return manifest("ListenerSet", f"{{parentRef: {parent}, listeners: [{HTTP}]}}")


def with_listeners(listeners: str) -> dict[str, Any]:
    """Return the manifest of a Gateway with these listeners."""
    return manifest("Gateway", f"{{gatewayClassName: edge, listeners: [{listeners}]}}")


def with_fields(fields: str) -> dict[str, Any]:
    """Return the manifest of a Gateway with one listener and these fields, which precede others."""
    document = with_listeners(HTTP)
    document["spec"] |= manifest("Gateway", f"{{{fields}}}")["spec"]
    return document


@pytest.mark.parametrize(("listeners", "field"), REFUSED_LISTENERS)
def test_listener_that_the_crd_refuses_is_refused(listeners: str, field: str) -> None:
    """The first problem is at the field with the mistake."""
    reading = read(with_listeners(listeners), IN_FILE)
    assert (faults(reading)[:1], reading.objects) == ([f"spec.{field}"], ())


@pytest.mark.parametrize(("listeners", "field"), REFUSED_LISTENERS)
def test_listener_of_a_set_that_the_crd_refuses_is_refused(listeners: str, field: str) -> None:
    """The listeners of both kinds have the same rules."""
    reading = read(set_with_listeners(listeners), IN_FILE)
    assert (faults(reading)[:1], reading.objects) == ([f"spec.{field}"], ())


@pytest.mark.parametrize(("parent", "field"), REFUSED_SETS)
def test_set_that_the_crd_refuses_is_refused(parent: str, field: str) -> None:
    """A part of a gateway cannot be the parent."""
    reading = read(set_with_parent(parent), IN_FILE)
    assert (faults(reading)[:1], reading.objects) == ([f"spec.{field}"], ())


@pytest.mark.parametrize(("fields", "field"), REFUSED_FIELDS)
def test_gateway_that_the_crd_refuses_is_refused(fields: str, field: str) -> None:
    """Fields without effect are checked like the others."""
    reading = read(with_fields(fields), IN_FILE)
    assert (faults(reading)[:1], reading.objects) == ([f"spec.{field}"], ())


@pytest.mark.parametrize(("spec", "field"), REFUSED_CLASSES)
def test_class_that_the_crd_refuses_is_refused(spec: str, field: str) -> None:
    """The controller is a domain with a path."""
    reading = read(manifest("GatewayClass", spec), IN_FILE)
    assert (faults(reading)[:1], reading.objects) == ([f"spec.{field}"], ())


@pytest.mark.parametrize(
    "document",
    [
        *map(with_listeners, ACCEPTED_LISTENERS),
        *map(with_fields, ACCEPTED_FIELDS),
        *(manifest("GatewayClass", spec) for spec in ACCEPTED_CLASSES),
        *map(set_with_listeners, ACCEPTED_LISTENERS),
        *map(set_with_parent, ACCEPTED_SETS),
    ],
    ids=[
        *ACCEPTED_LISTENERS[:-1],
        "64 listeners",
        *ACCEPTED_FIELDS,
        *ACCEPTED_CLASSES,
        *(f"set {listeners}" for listeners in ACCEPTED_LISTENERS[:-1]),
        "set with 64 listeners",
        *ACCEPTED_SETS,
    ],
)
def test_gateway_that_the_crd_accepts_has_no_error(document: dict[str, Any]) -> None:
    """Nothing that a user may write in a cluster is refused from a file."""
    reading = read(document, IN_FILE)
    assert (faults(reading), len(reading.objects)) == ([], 1)


def test_listener_of_https_that_passes_tls_on_names_mode_and_remedy() -> None:
    """The value is the mode, and not the mapping around it."""
    listener = "{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}"
    (problem,) = read(with_listeners(listener), IN_FILE).problems
    assert (problem.field, problem.value, problem.expected) == (
        "spec.listeners[0].tls.mode",
        '"Passthrough"',
        "must be Terminate for the protocol HTTPS; listeners of protocol TLS pass connections on unread",
    )
