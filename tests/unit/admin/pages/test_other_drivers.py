"""Resources of other drivers than Envoy's: their content is shown where it is JSON, secrets never."""

from dataclasses import replace
from typing import Any

import pytest

from meshwright.admin.pages.mesh.published_resources import published, versions
from meshwright.admin.pages.proxies.decoding import REDACTED, decoded
from meshwright.admin.pages.proxies.differences import difference, pair, read_type
from meshwright.admin.pages.proxies.proxy import left_out, secrets
from meshwright.admin.proxy_names import NothingToShow
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.sidecars.document.translate import CREDENTIALS, DOCUMENT, NAME
from xds.protocol.resources.resource import CLUSTER, ROUTE, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

PROXY = ProxyName.parse("uuid-1.store.shop")
THING = TypeUrl("type.example/things.v1.Thing")
OLD = Resource(DOCUMENT, NAME, Version("d1"), b'{"inbound": [], "privateKey": "PRIVATE KEY"}')
NEW = replace(OLD, version=Version("d2"), kept=b'{"inbound": [1]}')
KEY = Resource(CREDENTIALS, NAME, Version("k"), b'{"privateKey": "x"}', secret=True)
RAW = Resource(THING, ResourceName("t"), Version("t1"), b"\xff\xfe")
SNAPSHOT = Snapshot.of((OLD, KEY, RAW))


def test_versions_are_those_of_whatever_is_no_secret() -> None:
    """By the word of the type, or its URL where it has none; two types never share one."""
    assert versions(SNAPSHOT) == {"document": {"document": "d1"}, THING: {"t": "t1"}}
    others = Snapshot.of((RAW, replace(RAW, type_url=TypeUrl("type.example/other.Thing"))))
    assert len(versions(others)) == 2


async def test_a_proxy_of_another_driver_is_published(reading: Any) -> None:
    """As every other."""
    reading.the_snapshot = SNAPSHOT
    said: Any = await published(reading)
    (shown,) = said["snapshots"]
    assert shown == {"proxies": [str(PROXY)], "resources": versions(SNAPSHOT)}


def test_its_configuration_is_shown_without_keys() -> None:
    """JSON as it is, with what looks like a key replaced; of what is something else, how much it is."""
    assert decoded(SNAPSHOT) == {
        "credentials": {"document": {"version": "k", "resource": REDACTED}},
        "document": {"document": {"version": "d1", "resource": {"inbound": [], "privateKey": REDACTED}}},
        THING: {"t": {"version": "t1", "resource": {"undecodable": "2 bytes that are not JSON"}}},
    }


def test_two_versions_of_a_document_are_compared(reading: Any) -> None:
    """By its word or type URL; credentials are not."""
    reading.the_snapshot, reading.the_replaced = Snapshot.of((NEW, KEY)), (OLD,)
    served = reading.the_snapshot.types()
    for word in ("document", DOCUMENT):
        found: Any = difference(pair(reading, PROXY, read_type(word, served), NAME, OLD.version))
        assert [found[part] for part in ("type", "from", "to")] == ["document", "d1", "d2"]
        assert '-  "inbound": [],' in found["diff"]
    with pytest.raises(NothingToShow, match="never shown"):
        pair(reading, PROXY, read_type("credentials", served), NAME)
    with pytest.raises(NothingToShow, match="one of cluster, endpoint, listener, route, secret"):
        read_type("document", (CLUSTER, ROUTE))


def test_what_its_driver_cannot_do_is_said(reading: Any, view: Any) -> None:
    """Of this workload alone: the sections are its policy, and not all of that is served."""
    reading.the_view = view
    own, other = (
        Problem(
            code="MW3003",
            severity=Severity.ERROR,
            origin=InFile("f.yaml"),
            key=ObjectKey(WORKLOAD, Namespace("shop"), name),
            expected="",
        )
        for name in ("store-1", "buyer-1")
    )
    assert left_out((own, other), reading.the_proxies[0], reading.the_view) == [str(own)]


def test_its_certificate_is_shown_among_the_secrets(reading: Any, view: Any) -> None:
    """By serial and expiry, as Envoy's."""
    reading.the_view, reading.the_snapshot = view, SNAPSHOT
    (shown,) = secrets(reading, reading.the_proxies[0])
    assert (shown["name"], shown["serial"]) == ("service-cert:shop/store", "abc")
