"""Tests of MutualTLS: values that are read, and problems of invalid ones."""

import pytest
import yaml

from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.providers.directory.manifests import Manifests
from tests.tools import libyaml

WHOLE = """
mode: Permissive
serviceAccounts: [b, a]
ports: [9, 8, 9]
plaintext:
  sources: [{kind: IPRange, name: 10.1.2.3/8}, {kind: Service, name: old, namespace: x}]
  matches: [{kind: HTTPRouteGroup, name: web}]
"""
KEY = PolicyKey(Namespace("shop"), "m")


def read(spec: str) -> Manifests:
    """Read a MutualTLS with the spec."""
    document = {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "MutualTLS",
        "metadata": {"name": "m", "namespace": "shop"},
        "spec": libyaml.load(spec),
    }
    return Manifests().apply("m.yaml", yaml.safe_dump(document))


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("{mode: Strict}", MutualTLS(KEY, TlsMode.STRICT)),
        ("{mode: Permissive}", MutualTLS(KEY, TlsMode.PERMISSIVE)),
        ("{mode: Permissive, plaintext: {}}", MutualTLS(KEY, TlsMode.PERMISSIVE, plaintext=PlainText())),
        (
            WHOLE,
            MutualTLS(
                KEY,
                TlsMode.PERMISSIVE,
                (ServiceAccountName("a"), ServiceAccountName("b")),
                (Port(8), Port(9)),
                PlainText(
                    (ServiceKey(Namespace("x"), ServiceName("old")),), (IpRange("10.0.0.0/8"),), ("web",)
                ),
            ),
        ),
    ],
)
def test_mutual_tls_is_read_without_problems(spec: str, value: MutualTLS) -> None:
    """Lists are sorted without duplicates, and networks lose their host bits."""
    manifests = read(spec)
    assert [sourced_object.value for sourced_object in manifests.objects().values()] == [value]
    assert manifests.problems() == ()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("{}", "spec.mode"),
        ("{mode: permissive}", "spec.mode"),
        ("{mode: DISABLE}", "spec.mode"),
        ("{mode: Permissive, ports: []}", "spec.ports"),
        ("{mode: Permissive, ports: [http]}", "spec.ports[0]"),
        ("{mode: Permissive, serviceAccounts: []}", "spec.serviceAccounts"),
        ("{mode: Permissive, serviceAccounts: [A]}", "spec.serviceAccounts[0]"),
        ("{mode: Permissive, plaintext: {sources: []}}", "spec.plaintext.sources"),
        ("{mode: Permissive, plaintext: {matches: []}}", "spec.plaintext.matches"),
        (
            "{mode: Permissive, plaintext: {sources: [{kind: IPRange, name: x}]}}",
            "spec.plaintext.sources[0].name",
        ),
        (
            "{mode: Permissive, plaintext: {sources: [{kind: Service, name: x}]}}",
            "spec.plaintext.sources[0].namespace",
        ),
        (
            "{mode: Permissive, plaintext: {sources: [{kind: AuthenticatedPrincipal, name: x}]}}",
            "spec.plaintext.sources[0].kind",
        ),
    ],
)
def test_invalid_mutual_tls_is_refused_with_its_field(spec: str, field: str) -> None:
    """A partly read object could admit plain text, so nothing of it is in force."""
    manifests = read(spec)
    assert list(manifests.objects()) == []
    assert field in [problem.field for problem in manifests.problems()]
