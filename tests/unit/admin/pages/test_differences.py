"""What changed between two versions of a resource."""

from dataclasses import replace
from typing import Any

import pytest

from admin.pages.differences import difference, pair, read_type
from admin.pages.naming import NotShown
from mesh.identity import ProxyName
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resource import ROUTE, SECRET, Resource, ResourceName, Version, encode
from xds.protocol.snapshot import Snapshot

PROXY = ProxyName.parse("uuid-1.store.shop")
NAME = ResourceName("rds-inbound.8080")


def _route(host: str) -> Resource:
    message = route_pb2.RouteConfiguration(name=NAME)
    message.virtual_hosts.add(name=host, domains=["*"])
    return encode(message)


OLD, NEW = _route("old"), _route("new")


@pytest.fixture
def changed(reading: Any) -> Any:
    """Return a reading in which the proxy was sent NEW in the place of OLD."""
    (push,) = reading.the_pushes
    changes = ((NAME, OLD.version, NEW.version),)
    reading.the_pushes = (replace(push, changed=changes),)
    reading.the_snapshot = Snapshot.of([NEW])
    reading.the_replaced = (OLD,)
    return reading


def test_a_resource_is_compared_with_the_version_before_it(changed: Any) -> None:
    """Line by line, in Envoy's words."""
    assert difference(pair(changed, PROXY, ROUTE, NAME)) == {
        "proxy": "uuid-1.store.shop",
        "type": "route",
        "name": NAME,
        "from": OLD.version,
        "to": NEW.version,
        "diff": [
            f"--- {OLD.version}",
            f"+++ {NEW.version}",
            "@@ -5,7 +5,7 @@",
            '       "domains": [',
            '         "*"',
            "       ],",
            '-      "name": "old"',
            '+      "name": "new"',
            "     }",
            "   ]",
            " }",
        ],
    }


def test_two_versions_that_are_named_are_compared(changed: Any) -> None:
    """In either direction, and though the resource is gone."""
    found = pair(changed, PROXY, ROUTE, NAME, NEW.version, OLD.version)
    assert (found.before, found.after) == (NEW, OLD)
    changed.the_snapshot = None
    changed.the_replaced = (OLD, NEW)
    found = pair(changed, PROXY, ROUTE, NAME, OLD.version, NEW.version)
    assert (found.before, found.after) == (OLD, NEW)


def test_what_is_not_there_is_said(changed: Any) -> None:
    """A resource, a version, one before it, a type."""
    with pytest.raises(NotShown) as raised:
        pair(changed, PROXY, ROUTE, ResourceName("x"))
    assert str(raised.value) == "uuid-1.store.shop is not served route x"
    with pytest.raises(NotShown) as raised:
        pair(changed, PROXY, ROUTE, NAME, Version("nope"))
    assert str(raised.value) == f"version nope of route {NAME} is not kept; kept are {OLD.version}"
    changed.the_pushes = ()
    with pytest.raises(NotShown, match="no earlier version of route"):
        pair(changed, PROXY, ROUTE, NAME)
    with pytest.raises(NotShown, match="there is no type 'x': it is one of cluster, endpoint, listener"):
        read_type("x")


def test_secrets_are_never_compared(changed: Any) -> None:
    """Even one that were kept would not be shown."""
    with pytest.raises(NotShown, match="what a secret holds is never shown"):
        pair(changed, PROXY, read_type("secret"), ResourceName("service-cert"))
    assert read_type("secret") == SECRET
