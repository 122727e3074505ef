"""Tests of the difference between two versions of a resource."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.pages import routes, site
from meshwright.admin.pages.proxies.differences import difference, pair, read_type
from meshwright.admin.proxy_names import NothingToShow
from meshwright.mesh.identity import ProxyName
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resources.resource import ROUTE, SECRET, Resource, ResourceName, TypeUrl, Version, encode
from xds.protocol.resources.snapshot import Snapshot

PROXY = ProxyName.parse("uuid-1.store.shop")
NAME = ResourceName("rds-inbound.8080")


def _route(host: str) -> Resource:
    message = route_pb2.RouteConfiguration(name=NAME)
    message.virtual_hosts.add(name=host, domains=["*"])
    return encode(message)


OLD, NEW = _route("old"), _route("new")


@pytest.fixture
def changed(reading: Any) -> Any:
    """Return a reading in which the proxy was sent NEW in place of OLD."""
    (push,) = reading.the_pushes
    changes = ((NAME, OLD.version, NEW.version),)
    reading.the_pushes = (replace(push, changed=changes),)
    reading.the_snapshot = Snapshot.of([NEW])
    reading.the_replaced = (OLD,)
    return reading


def test_resource_is_compared_with_its_previous_version(changed: Any) -> None:
    """Without given versions, the served resource is compared line by line with the version before."""
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


def test_two_given_versions_are_compared(changed: Any) -> None:
    """Two given versions are compared in either direction, also if the resource is no longer served."""
    result = pair(changed, PROXY, ROUTE, NAME, NEW.version, OLD.version)
    assert (result.before, result.after) == (NEW, OLD)
    changed.the_snapshot = None
    changed.the_replaced = (OLD, NEW)
    result = pair(changed, PROXY, ROUTE, NAME, OLD.version, NEW.version)
    assert (result.before, result.after) == (OLD, NEW)


def test_missing_resource_version_or_type_is_an_error(changed: Any) -> None:
    """The error names the missing resource, version or type, and the available ones."""
    with pytest.raises(NothingToShow) as raised:
        pair(changed, PROXY, ROUTE, ResourceName("x"))
    assert str(raised.value) == "proxy uuid-1.store.shop does not have route x"
    with pytest.raises(NothingToShow) as raised:
        pair(changed, PROXY, ROUTE, NAME, Version("nope"))
    assert (
        str(raised.value)
        == f"version nope of route {NAME} is not stored any more; stored versions: {OLD.version}"
    )
    changed.the_pushes = ()
    with pytest.raises(NothingToShow, match="the server does not know a version of route"):
        pair(changed, PROXY, ROUTE, NAME)
    with pytest.raises(
        NothingToShow, match="type 'x' is unknown: must be one of cluster, endpoint, listener"
    ):
        read_type("x")


def test_secrets_are_never_compared(changed: Any) -> None:
    """A comparison of secrets is refused before any version is looked up."""
    with pytest.raises(NothingToShow, match="the content of a secret and its changes are never shown"):
        pair(changed, PROXY, read_type("secret"), ResourceName("service-cert"))
    assert read_type("secret") == SECRET


LINK = re.compile(r'href="(/debug/xds/diff\?[^"]*)"')


async def _links(reading: Any, now: Any) -> set[tuple[str, int]]:
    """Follow every link to a difference from the pages of the proxy; return each page with the status."""
    app = site.application(routes.pages(reading, lambda: now), (), lambda: now)
    ways = ("proxy?", "proxy/show?", "xds?", f"xds?resource=route/{NAME}&")
    result: set[tuple[str, int]] = set()
    async with TestClient(TestServer(app)) as client:
        for way in ways:
            page = await client.get(f"/debug/{way}proxy=uuid-1", headers={"Accept": "text/html"})
            assert page.status == 200 or "resource=" in way
            for item in LINK.findall(await page.text()):
                result.add((way, (await client.get(html.unescape(item))).status))
    return result


async def test_every_link_to_a_difference_works(changed: Any, now: Any) -> None:
    """The links on the pages of pushes, configuration and one resource all lead to a difference."""
    ways = {"proxy?", "proxy/show?", "xds?", f"xds?resource=route/{NAME}&"}
    assert await _links(changed, now) == {(way, 200) for way in ways}


async def test_difference_without_kept_versions_has_no_link(changed: Any, now: Any) -> None:
    """A version that is no longer stored, and a secret of any type, has no link to a difference."""
    changed.the_replaced = ()
    assert await _links(changed, now) == set()
    kind = TypeUrl("meshwright.dev/document.v1.Credentials")
    secret = Resource(kind, ResourceName("all"), Version("new"), b"{}", secret=True)
    changed.the_snapshot = Snapshot.of([secret])
    (push,) = changed.the_pushes
    changes = ((secret.name, Version("old"), secret.version),)
    changed.the_pushes = (replace(push, type_url=kind, changed=changes),)
    assert await _links(changed, now) == set()
