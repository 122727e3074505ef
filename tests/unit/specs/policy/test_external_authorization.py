"""Tests of ExternalAuthorization: values that are read, and problems of invalid ones."""

from dataclasses import replace
from datetime import timedelta

import pytest
import yaml

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from meshwright.mesh.policies.authorization import NOWHERE, Authorizer, ExternalAuthorization
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.providers.directory.manifests import Manifests
from tests.tools import libyaml

KEY = PolicyKey(Namespace("shop"), "m")
OPA = Authorizer(HostPort("opa.opa", 9191), "inboundExtAuthz", timedelta(seconds=1))

WHOLE = """
{host: 'fd00::7', port: 1, timeout: 250ms, failureModeAllow: true, serviceAccounts: [b, a], ports: [9, 8, 9]}
"""


def read(spec: str) -> Manifests:
    """Read an ExternalAuthorization with the spec."""
    document = {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "ExternalAuthorization",
        "metadata": {"name": "m", "namespace": "shop"},
        "spec": libyaml.load(spec),
    }
    return Manifests().apply("m.yaml", yaml.safe_dump(document))


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("{host: opa.opa, port: 9191}", ExternalAuthorization(KEY, OPA)),
        ("{host: OPA.opa., port: 9191, disabled: false}", ExternalAuthorization(KEY, OPA)),
        ("{disabled: true}", ExternalAuthorization(KEY, None)),
        (
            "{extensionService: {name: opa, namespace: opa}}",
            ExternalAuthorization(
                KEY, replace(OPA, server=NOWHERE), service=PolicyKey(Namespace("opa"), "opa")
            ),
        ),
        (
            "{extensionService: {name: opa}}",
            ExternalAuthorization(
                KEY, replace(OPA, server=NOWHERE), service=PolicyKey(Namespace("shop"), "opa")
            ),
        ),
        (
            WHOLE,
            ExternalAuthorization(
                KEY,
                Authorizer(
                    HostPort("fd00::7", 1), "inboundExtAuthz", timedelta(milliseconds=250), fails_open=True
                ),
                (ServiceAccountName("a"), ServiceAccountName("b")),
                (Port(8), Port(9)),
            ),
        ),
    ],
)
def test_external_authorization_is_read_without_problems(spec: str, value: ExternalAuthorization) -> None:
    """Host names are lower-case, lists are sorted without duplicates, and omitted fields have defaults."""
    manifests = read(spec)
    assert [sourced_object.value for sourced_object in manifests.objects().values()] == [value]
    assert manifests.problems() == ()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("{}", "spec.host"),
        ("{host: opa}", "spec.port"),
        ("{port: 9191}", "spec.host"),
        ("{host: '', port: 9191}", "spec.host"),
        ("{host: 'http://opa', port: 9191}", "spec.host"),
        ("{host: opa, port: '9191'}", "spec.port"),
        ("{host: opa, port: 0}", "spec.port"),
        ("{host: opa, port: 1, timeout: 0s}", "spec.timeout"),
        ("{host: opa, port: 1, timeout: 6m}", "spec.timeout"),
        ("{host: opa, port: 1, failureModeAllow: 'yes'}", "spec.failureModeAllow"),
        ("{host: opa, port: 1, ports: []}", "spec.ports"),
        ("{host: opa, port: 1, ports: [http]}", "spec.ports[0]"),
        ("{host: opa, port: 1, serviceAccounts: []}", "spec.serviceAccounts"),
        ("{host: opa, port: 1, serviceAccounts: [A]}", "spec.serviceAccounts[0]"),
        ("{disabled: true, host: opa}", "spec.host"),
        ("{disabled: true, failureModeAllow: true}", "spec.failureModeAllow"),
        ("{disabled: 'true'}", "spec.disabled"),
        ("{extensionService: {}}", "spec.extensionService.name"),
        ("{extensionService: {name: a}, host: opa}", "spec.host"),
        ("{extensionService: {name: a}, port: 1}", "spec.port"),
        ("{disabled: true, extensionService: {name: a}}", "spec.extensionService"),
    ],
)
def test_invalid_external_authorization_is_refused_with_its_field(spec: str, field: str) -> None:
    """A partly read object could authorize the wrong requests, so nothing of it is in force."""
    manifests = read(spec)
    assert list(manifests.objects()) == []
    assert field in [problem.field for problem in manifests.problems()]
