"""Tests of the authorizer at a port: policy, oracle and lint agree."""

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.oracle.authorization import authorizer_at
from catalog.oracle.targets import Place
from catalog.policy.inbound import inbound_ports
from catalog.policy.objects.authorization import port_authorizer
from catalog.relations.groups import groups
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.authorization import NOWHERE, Authorizer, ExternalAuthorization
from meshwright.mesh.policies.telemetry import ExtensionService
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

SHOP, PORT = ServiceAccountName("shop"), Port(8080)


def authorizer(name: str) -> Authorizer:
    """Make an authorizer with a host of its own."""
    return Authorizer(HostPort(name, 9191), "asked", timedelta(seconds=1))


def policy(
    name: str, *accounts: ServiceAccountName, ports: tuple[Port, ...] = (), created: str = ""
) -> ExternalAuthorization:
    """Make an ExternalAuthorization whose authorizer has its name; the one called `nobody` has none."""
    there = None if name == "nobody" else authorizer(name)
    return ExternalAuthorization(a.policy_key(name), there, accounts, ports, created)


EVERYWHERE = MeshConfig(authorization=authorizer("mesh"))
NEAREST_LAST = (
    policy("z"),
    policy("y", created="2026-01-02T00:00:00Z"),
    policy("x", created="2026-01-01T00:00:00Z"),
    policy("p", ports=(PORT,)),
    policy("s", SHOP),
    policy("nobody", SHOP, ports=(PORT, Port(9))),
)


@pytest.mark.parametrize("count", range(len(NEAREST_LAST) + 1))
def test_most_specific_external_authorization_is_in_force(count: int) -> None:
    """The order of objects does not matter; without any object the mesh's authorizer is asked."""
    last = NEAREST_LAST[count - 1].authorizer if count else EVERYWHERE.authorization
    for those in list(permutations(NEAREST_LAST[:count]))[:24]:
        view = a.view(EVERYWHERE, *those)
        external_authorizer = port_authorizer(view, a.identity("shop"), PORT, Protocol.HTTP)
        assert (external_authorizer.authorizer if external_authorizer else None) == last
        assert authorizer_at(view, (Place(a.identity("shop"), PORT), True)) == last


def test_external_authorization_has_no_effect_on_other_places() -> None:
    """It has no effect on another account, another port, or a protocol other than HTTP."""
    view = a.view(policy("opa", SHOP, ports=(PORT,)))
    shop, other = a.identity("shop"), a.identity("other")
    for identity, port, protocol in (
        (other, PORT, Protocol.HTTP),
        (shop, Port(9), Protocol.HTTP),
        (shop, PORT, Protocol.TCP),
    ):
        assert port_authorizer(view, identity, port, protocol) is None
        assert authorizer_at(view, (Place(identity, port), protocol.is_http)) is None
    assert port_authorizer(view, shop, PORT, Protocol.HTTP) is not None


def test_external_authorization_is_part_of_the_port_of_its_workloads() -> None:
    """Only inbound ports of the account shop have the authorizer."""
    view = a.view(
        a.service("shop"),
        a.workload("shop", "10.0.0.1"),
        a.service("bank"),
        a.workload("bank", "10.0.0.2"),
        policy("opa", SHOP),
    )
    result = {
        group.identity.service_account: [port.asked and port.asked.by for port in inbound_ports(view, group)]
        for group in groups(view)
    }
    assert result == {"shop": [a.policy_key("opa")], "bank": [None]}


@pytest.mark.parametrize(
    ("those", "expected"),
    [
        ((policy("opa.other"),), []),
        ((policy("a"), policy("b")), [("MW2150", "spec", "b:9191")]),
        ((policy("a"), policy("nobody")), [("MW2150", "spec", "disabled")]),
        ((policy("a"), policy("b", SHOP)), []),
        ((policy("a", ServiceAccountName("shopp")),), [("MW2151", "spec.serviceAccounts[0]", "shopp")]),
        ((policy("a", ports=(Port(81),)),), [("MW2152", "spec.ports", "81")]),
        ((policy("shop.default"),), [("MW2041", "spec.host", "shop.default:9191")]),
    ],
)
def test_problems_of_external_authorizations_name_field_and_value(
    those: tuple[ExternalAuthorization, ...], expected: list[tuple[str, str, str]]
) -> None:
    """Overruled objects, unknown accounts and ports, and authorizers inside the mesh are reported."""
    view = a.view(a.service("shop"), a.workload("shop", "10.0.0.1"), *those)
    result = [(problem.code, problem.field, problem.value) for problem in problems(view)]
    assert [item for item in result if item[1].startswith("spec")] == expected


def test_authorizer_address_comes_from_its_extension_service() -> None:
    """Without the ExtensionService the authorizer is asked at `NOWHERE`, so that no request passes unchecked.

    Lint reports MW2154 then.
    """
    named = replace(policy("named"), authorizer=replace(authorizer("x"), server=NOWHERE))
    named = replace(named, service=a.policy_key("opa"))
    there = ExtensionService(a.policy_key("opa"), HostPort("opa.opa", 4000))
    result = []
    for more in ((), (there,)):
        view = a.view(a.service("shop"), a.workload("shop", "10.0.0.1"), EVERYWHERE, named, *more)
        place = (Place(a.identity("shop"), PORT), True)
        policys, oracles = (
            port_authorizer(view, a.identity("shop"), PORT, Protocol.HTTP),
            authorizer_at(view, place),
        )
        assert policys is not None
        assert policys.authorizer == oracles
        codes = [problem.code for problem in problems(view) if problem.code == Code.UNKNOWN_AUTHORIZER.value]
        result.append((policys.authorizer.server, codes))
    assert result == [(NOWHERE, ["MW2154"]), (there.server, [])]
