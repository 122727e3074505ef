"""Which kinds are watched in which version, as a server serves them, stops to, or does not say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from meshwright.kube.discovery import ServedResources
from meshwright.kube.resource import Resource
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TRAFFIC_TARGET, WORKLOAD, Kind
from meshwright.providers.kubernetes.resources import CORE, GROUPS, POLICY, Plan, newest, planned
from meshwright.specs.kinds import READ
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from tests.unit.providers.kubernetes.cluster import TARGETS, WORKLOADS

HOLD, NOW = timedelta(seconds=30), timedelta(hours=1)
FIRST = planned(Plan(), ServedResources((*CORE.values(), TARGETS, WORKLOADS)), NOW, HOLD)


def _versions(*versions: str) -> ServedResources:
    return ServedResources(tuple(replace(TARGETS, version=each) for each in versions))


def test_what_is_read_is_watched_but_for_what_makes_pods_and_endpoints() -> None:
    """Whatever is read from files is either watched, or left out knowingly."""
    left_out = {kind.name for kind in READ} - {kind.name for kind in (*CORE, *POLICY)}
    assert left_out == {
        "CronJob", "DaemonSet", "Deployment", "Endpoints", "Job", "PodTemplate", "ReplicaSet",
        "ReplicationController", "StatefulSet",
    }  # fmt: skip
    assert set(UNENFORCED) <= set(POLICY)
    assert {kind.group for kind in POLICY} == {*GROUPS}


def test_the_core_is_watched_and_policy_where_its_crd_is() -> None:
    """Nothing else that a server serves."""
    found = planned(
        Plan(), ServedResources((TARGETS, Resource("apps", "v1", "deployments", "Deployment"))), NOW, HOLD
    )
    assert found == Plan({**CORE, TRAFFIC_TARGET: TARGETS})


@pytest.mark.parametrize(
    ("served", "chosen"),
    [
        (("v1alpha1", "v1alpha3", "v1alpha2"), "v1alpha3"),
        (("v1alpha4", "v1alpha2"), "v1alpha2"),
        (("v1alpha4",), None),
        (("v1", "v1beta1"), None),
        ((), None),
    ],
)
def test_the_newest_version_that_is_read_is_watched(served: tuple[str, ...], chosen: str | None) -> None:
    """TrafficTarget's v1alpha4 is a draft that is not."""
    found = newest(TRAFFIC_TARGET, _versions(*served))
    assert (None if found is None else found.version) == chosen


def test_a_kind_that_is_not_enforced_is_watched_in_its_newest_version() -> None:
    """Of which nothing is read but that it is there."""
    kind = Kind("AccessCert", "policy.openservicemesh.io")
    old = Resource(kind.group, "v1alpha1", "accesscerts", kind.name)
    new = replace(old, version="v1beta1")
    assert planned(Plan(), ServedResources((old, new)), NOW, HOLD).watched[kind] == new


def test_a_crd_that_comes_is_noticed() -> None:
    """And one of a newer version takes the place of the older."""
    found = planned(FIRST, ServedResources((*FIRST.watched.values(), _group("v1alpha3"))), NOW, HOLD)
    assert found.watched[HTTP_ROUTE_GROUP] == _group("v1alpha3")
    both = ServedResources((*FIRST.watched.values(), _group("v1alpha3"), _group("v1alpha4")))
    assert planned(found, both, NOW, HOLD).watched[HTTP_ROUTE_GROUP] == _group("v1alpha4")


def test_a_kind_that_is_served_no_more_goes_after_a_while() -> None:
    """A server that has just begun may not know all of its CRDs yet; if it is back soon nothing was."""
    gone = ServedResources((*CORE.values(), WORKLOADS))
    doubted = planned(FIRST, gone, NOW, HOLD)
    assert doubted == Plan(FIRST.watched, {TRAFFIC_TARGET: NOW})
    assert planned(doubted, gone, NOW + HOLD / 2, HOLD) == doubted
    assert planned(doubted, ServedResources((*gone.resources, TARGETS)), NOW + HOLD / 2, HOLD) == FIRST
    assert planned(doubted, gone, NOW + HOLD, HOLD) == Plan({**CORE, WORKLOAD: WORKLOADS})
    assert planned(FIRST, gone, NOW, timedelta(0)) == Plan({**CORE, WORKLOAD: WORKLOADS})


def test_what_a_server_does_not_say_removes_nothing() -> None:
    """One behind it may be away for long."""
    unknown = ServedResources((*CORE.values(), WORKLOADS), frozenset({TRAFFIC_TARGET.group}))
    later = planned(FIRST, unknown, NOW, HOLD)
    assert planned(later, unknown, NOW + 9 * HOLD, HOLD) == FIRST


def test_a_kind_that_is_served_in_other_versions_alone_stays_and_is_said() -> None:
    """Its objects are there, and cannot be read."""
    served = ServedResources((*CORE.values(), WORKLOADS, *_versions("v1", "v2alpha1").resources))
    assert planned(FIRST, served, NOW + 9 * HOLD, HOLD) == Plan(
        FIRST.watched, {}, {TRAFFIC_TARGET: ("v1", "v2alpha1")}
    )


def _group(version: str) -> Resource:
    return Resource(HTTP_ROUTE_GROUP.group, version, "httproutegroups", HTTP_ROUTE_GROUP.name)
