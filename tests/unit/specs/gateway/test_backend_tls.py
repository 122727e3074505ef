"""Tests of BackendTLSPolicies: whole values, the rules of the CRD, and what is tolerated from a cluster."""

import pytest

from meshwright.mesh.gateway.backend_tls import AltName, AltNameType, BackendTLSPolicy, PolicyTarget
from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.kinds import CONFIG_MAP, SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.reader import read
from tests.unit.specs.gateway.manifests import IN_CLUSTER, IN_FILE, faults, manifest, route_of

KEY = PolicyKey(Namespace("shop"), "r")
TARGET = "{group: '', kind: Service, name: web}"
CA = "{group: '', kind: ConfigMap, name: ca}"
VALID = f"{{hostname: web.example, caCertificateRefs: [{CA}]}}"


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
def test_whole_policy_is_read(version: str) -> None:
    """Both versions have one form."""
    document = manifest(
        "BackendTLSPolicy",
        """
        targetRefs:
        - {group: "", kind: Service, name: web, sectionName: https}
        - {group: "", kind: Service, name: web, sectionName: admin}
        validation:
          hostname: web.example
          caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]
          subjectAltNames:
          - {type: Hostname, hostname: "*.web.example"}
          - {type: URI, uri: "spiffe://web.example/web"}
        options: {example.com/tls: new}
        """,
        version,
    )
    document["metadata"] |= {"generation": 7, "creationTimestamp": "2026-11-23T08:00:00Z"}
    document["status"] = {"ancestors": "anything"}
    reading = read(document, IN_FILE)
    assert reading.problems == ()
    assert route_of(reading) == BackendTLSPolicy(
        KEY,
        (PolicyTarget(SERVICE, "web", "https"), PolicyTarget(SERVICE, "web", "admin")),
        "web.example",
        (ObjectReference(CONFIG_MAP, "ca"),),
        names=(
            AltName(AltNameType.HOSTNAME, "*.web.example"),
            AltName(AltNameType.URI, "spiffe://web.example/web"),
        ),
        generation=7,
        created="2026-11-23T08:00:00Z",
        unused=("spec.options",),
    )


@pytest.mark.parametrize("name", ["System", "example.com/authorities"])
def test_well_known_certificates_are_a_name(name: str) -> None:
    """The name is checked where the policy applies, because other controllers have names of their own."""
    spec = f"{{targetRefs: [{TARGET}], validation: {{hostname: a.b, wellKnownCACertificates: {name}}}}}"
    found = route_of(read(manifest("BackendTLSPolicy", spec), IN_FILE))
    assert (found.well_known, found.authorities) == (name, ())


def _many(form: str, count: int) -> str:
    return ", ".join(form.replace("NUMBER", str(number)) for number in range(count))


REFUSED_TARGETS = [
    ("", "targetRefs"),
    (_many("{group: '', kind: Service, name: aNUMBER}", 17), "targetRefs"),
    ("{kind: Service, name: a}", "targetRefs[0].group"),
    ("{group: '', name: a}", "targetRefs[0].kind"),
    ("{group: '', kind: Service}", "targetRefs[0].name"),
    ("{group: '', kind: Service, name: ''}", "targetRefs[0].name"),
    ("{group: '', kind: Service, name: a, namespace: b}", "targetRefs[0].namespace"),
    ("{group: '', kind: Service, name: a, sectionName: ''}", "targetRefs[0].sectionName"),
    (f"{TARGET}, {TARGET}", "targetRefs[1]"),
    (f"{TARGET}, {{group: '', kind: Service, name: web, sectionName: a}}", "targetRefs[1]"),
    (_many("{group: '', kind: Service, name: web, sectionName: a}", 2), "targetRefs[1]"),
]
REFUSED_VALIDATIONS = [
    ("{hostname: a.b}", "caCertificateRefs"),
    ("{hostname: a.b, caCertificateRefs: []}", "caCertificateRefs"),
    (f"{{hostname: a.b, caCertificateRefs: [{_many(CA, 9)}]}}", "caCertificateRefs"),
    (
        f"{{hostname: a.b, caCertificateRefs: [{CA}], wellKnownCACertificates: System}}",
        "wellKnownCACertificates",
    ),
    ("{hostname: a.b, wellKnownCACertificates: ''}", "wellKnownCACertificates"),
    ("{hostname: a.b, wellKnownCACertificates: Custom}", "wellKnownCACertificates"),
    (f"{{caCertificateRefs: [{CA}]}}", "hostname"),
    (f"{{hostname: '', caCertificateRefs: [{CA}]}}", "hostname"),
    (f"{{hostname: '*.a', caCertificateRefs: [{CA}]}}", "hostname"),
    ("{hostname: a.b, caCertificateRefs: [{kind: ConfigMap, name: ca}]}", "caCertificateRefs[0].group"),
    ("{hostname: a.b, caCertificateRefs: [{group: '', name: ca}]}", "caCertificateRefs[0].kind"),
]
REFUSED_NAMES = [
    (_many("{type: Hostname, hostname: a.b}", 6), "subjectAltNames"),
    ("{hostname: a.b}", "subjectAltNames[0].type"),
    ("{type: Email, hostname: a.b}", "subjectAltNames[0].type"),
    ("{type: Hostname}", "subjectAltNames[0].hostname"),
    ("{type: Hostname, hostname: ''}", "subjectAltNames[0].hostname"),
    ("{type: Hostname, hostname: a.b, uri: 'a://b'}", "subjectAltNames[0].uri"),
    ("{type: URI}", "subjectAltNames[0].uri"),
    ("{type: URI, uri: a}", "subjectAltNames[0].uri"),
    ("{type: URI, uri: 'a://b', hostname: a.b}", "subjectAltNames[0].hostname"),
]
REFUSED = [
    *((f"{{targetRefs: [{targets}], validation: {VALID}}}", path) for targets, path in REFUSED_TARGETS),
    *(
        (f"{{targetRefs: [{TARGET}], validation: {validation}}}", f"validation.{path}")
        for validation, path in REFUSED_VALIDATIONS
    ),
    *(
        (
            f"{{targetRefs: [{TARGET}], validation: {VALID[:-1]}, subjectAltNames: [{names}]}}}}",
            f"validation.{path}",
        )
        for names, path in REFUSED_NAMES
    ),
    (f"{{validation: {VALID}}}", "targetRefs"),
    (f"{{targetRefs: [{TARGET}]}}", "validation"),
    (
        f"{{targetRefs: [{TARGET}], validation: {VALID}, options: {{a: {'b' * 4097}}}}}",
        "options[a]",
    ),
    (f"{{targetRefs: [{TARGET}], validation: {VALID}, options: {{{_many('aNUMBER: b', 17)}}}}}", "options"),
    (f"{{targetRefs: [{TARGET}], validation: {VALID}, extra: 1}}", "extra"),
]


ACCEPTED = [
    f"{{targetRefs: [{TARGET}], validation: {VALID}}}",
    f"{{targetRefs: [{_many(TARGET[:-1] + ', sectionName: aNUMBER}', 16)}], validation: {VALID}}}",
    f"{{targetRefs: [{TARGET}], validation: {{hostname: a, caCertificateRefs: [{_many(CA, 8)}]}}}}",
    f"{{targetRefs: [{{group: a.b, kind: Web, name: A}}, {TARGET}], validation: {VALID}, options: {{}}}}",
    *(
        f"{{targetRefs: [{TARGET}], validation: {VALID[:-1]}, subjectAltNames: [{names}]}}}}"
        for names in (
            "",
            "{type: Hostname, hostname: '*.a'}",
            "{type: URI, uri: 'a://'}",
            "{type: URI, uri: 'a b://c d?e#f'}",
        )
    ),
    f"{{targetRefs: [{TARGET}], validation: {VALID}, options: {{'a b': c}}}}",
    f"{{targetRefs: [{TARGET}], validation: {{hostname: a, wellKnownCACertificates: a.b/C_d}}}}",
]


@pytest.mark.parametrize("spec", ACCEPTED)
def test_crd_accepts_the_same_manifests(spec: str) -> None:
    """Negative control, with values at the limits."""
    reading = read(manifest("BackendTLSPolicy", spec), IN_FILE)
    assert (len(reading.objects), faults(reading)) == (1, [])


@pytest.mark.parametrize(("spec", "path"), REFUSED)
def test_crd_refuses_the_same_manifests(spec: str, path: str) -> None:
    """Nothing else checks a manifest in a file."""
    reading = read(manifest("BackendTLSPolicy", spec), IN_FILE)
    assert (reading.objects, faults(reading)[:1]) == ((), [f"spec.{path}"])


def test_policy_of_a_cluster_is_always_read() -> None:
    """An unread policy would let requests through in plain text; a new field of the check is not skipped."""
    spec = f"{{targetRefs: [{TARGET}], new: 1, validation: {VALID[:-1]}, newer: 2}}}}"
    reading = read(manifest("BackendTLSPolicy", spec), IN_CLUSTER)
    found = route_of(reading)
    assert (reading.problems, found.targets) == ((), (PolicyTarget(SERVICE, "web"),))
    assert found.unused == ("spec.new",)
    assert found.dropped.startswith("spec.validation.newer")
