"""Tests of resources of drivers other than Envoy: JSON content is shown, secrets never."""

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


def test_versions_are_listed_by_type_without_secrets() -> None:
    """Versions are listed by the type's short name, or by its URL so that two types never share a name."""
    assert versions(SNAPSHOT) == {"document": {"document": "d1"}, THING: {"t": "t1"}}
    others = Snapshot.of((RAW, replace(RAW, type_url=TypeUrl("type.example/other.Thing"))))
    assert len(versions(others)) == 2


async def test_snapshot_of_another_driver_is_published(reading: Any) -> None:
    """The page of published snapshots shows those of other drivers too."""
    reading.the_snapshot = SNAPSHOT
    answer: Any = await published(reading)
    (shown,) = answer["snapshots"]
    assert shown == {"proxies": [str(PROXY)], "resources": versions(SNAPSHOT)}


def test_configuration_is_shown_without_keys() -> None:
    """JSON is shown with keys replaced; for other content the size is shown."""
    assert decoded(SNAPSHOT) == {
        "credentials": {"document": {"version": "k", "resource": REDACTED}},
        "document": {"document": {"version": "d1", "resource": {"inbound": [], "privateKey": REDACTED}}},
        THING: {"t": {"version": "t1", "resource": {"undecodable": "2 bytes that are not JSON"}}},
    }


def test_two_versions_of_a_document_are_compared(reading: Any) -> None:
    """Documents are compared by short name or type URL; credentials are refused."""
    reading.the_snapshot, reading.the_replaced = Snapshot.of((NEW, KEY)), (OLD,)
    served = reading.the_snapshot.types()
    for word in ("document", DOCUMENT):
        result: Any = difference(pair(reading, PROXY, read_type(word, served), NAME, OLD.version))
        assert [result[part] for part in ("type", "from", "to")] == ["document", "d1", "d2"]
        assert '-  "inbound": [],' in result["diff"]
    with pytest.raises(NothingToShow, match="never shown"):
        pair(reading, PROXY, read_type("credentials", served), NAME)
    with pytest.raises(NothingToShow, match="one of cluster, endpoint, listener, route, secret"):
        read_type("document", (CLUSTER, ROUTE))


def test_problems_of_the_driver_are_shown_for_this_workload_only(reading: Any, view: Any) -> None:
    """Only problems of the proxy's own workload are listed.

    The sections show its policy, which the driver may serve only partly.
    """
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


def test_service_certificate_is_shown_among_the_secrets(reading: Any, view: Any) -> None:
    """The service certificate of a proxy of another driver is shown with its serial."""
    reading.the_view, reading.the_snapshot = view, SNAPSHOT
    (shown,) = secrets(reading, reading.the_proxies[0])
    assert (shown["name"], shown["serial"]) == ("service-cert:shop/store", "abc")
