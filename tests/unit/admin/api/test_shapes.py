"""Tests of the API's shapes: the fields that documents must and may have."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange, OutsideRoute
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from meshwright.admin.api import shapes
from meshwright.admin.api.proxies import PROXY
from meshwright.admin.api.shape import TEXT, WHOLE, fitted, record
from meshwright.admin.pages.mesh.sources import sources
from meshwright.admin.pages.proxies import description as describe
from meshwright.admin.pages.proxies.proxy import policy_of
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ExternalHost
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.providers.contract import Freshness, Watch
from tests.meshes import values as a
from tests.meshes.route_entries import entry

SECTIONS = {
    "listeners": describe.listeners,
    "routes": describe.routes,
    "clusters": describe.clusters,
    "endpoints": describe.endpoints,
}


def test_shape_keeps_its_fields_and_drops_all_others() -> None:
    """A shape keeps only its own fields.

    A missing required field is an error, a missing optional field is not.
    """
    shape = record({"a": TEXT}, {"b": WHOLE})
    assert fitted(shape, {"b": 1, "c": 2, "a": "x"}) == {"a": "x", "b": 1}
    assert fitted(shape, {"a": "x"}) == {"a": "x"}
    with pytest.raises(KeyError, match="a"):
        fitted(shape, {"b": 1})


def _everything(policy: ProxyPolicy) -> ProxyPolicy:
    """Return a policy with every kind of route and destination that a line can describe."""
    get, (service, *_) = (a.match("get", "/books", "GET"),), policy.outbound
    key, backend = PolicyKey(Namespace("n"), "s"), WeightedBackend(service.upstream, "1", 90)
    split = entry(backend, split=key, match=get[0])
    hosts = (
        OutsideHost("x.test", (OutsideRoute(get, ExternalHost("x.test")),)),
        OutsideHost("z.test", ()),
    )
    ranges = (OutsideRange(server_names=("x.test",), hosts=hosts), OutsideRange(("192.0.2.0/24",)))
    return replace(
        policy,
        reachable=(
            ReachableServices.from_sorted((replace(service, table=(split, entry())),)),
            ReachableServices(
                destinations=SharedTuple((ExternalDestination(ExternalHost("x.test"), Port(80), True),))
            ),
        ),
        outside=(OutsidePort(Port(80), ranges, by=(PolicyKey(Namespace("shop"), "e"),)),),
        passthrough=True,
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_shape_of_a_proxy_line_keeps_all_fields(reading: Any, section: str) -> None:
    """The shape of each section keeps every field of its inbound, outbound and external lines."""
    (server,) = reading.the_proxies
    client = replace(server, name=ProxyName.parse("uuid-2.buyer.shop"))
    proxy_policies = [policy_of(reading, item) for item in (server, client)]
    policies = [proxy_policy for proxy_policy in proxy_policies if proxy_policy is not None]
    assert len(policies) == 2
    properties: Any = PROXY["properties"]
    lines = [
        line
        for proxy_policy in (*policies, _everything(policies[1]))
        for line in SECTIONS[section](proxy_policy)
    ]
    assert lines
    assert fitted(properties[section], list[Any](lines)) == lines


def test_shape_of_a_source_keeps_all_fields(reading: Any, now: Any) -> None:
    """The shape of a source keeps every field of the source and of its watches."""
    pods = Watch("pods", "shop", now, now - timedelta(minutes=1), now, 2, 40, {"timeout": 1}, "no", now)
    reading.the_freshness = {"kubernetes": Freshness(now, now, "gone", now, ("shop/db",), (pods,))}
    document = {"at": "now", **sources(reading, now)}
    assert fitted(shapes.SOURCES, document) == document
