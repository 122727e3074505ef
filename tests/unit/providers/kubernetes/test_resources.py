"""Tests of the plan of watched resources: kinds and versions that a server serves, removes or cannot list."""

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
    return ServedResources(tuple(replace(TARGETS, version=version) for version in versions))


def test_all_kinds_read_are_watched_except_pod_creators_and_endpoints() -> None:
    """A kind that is read from files is either watched or listed here as left out."""
    left_out = {kind.name for kind in READ} - {kind.name for kind in (*CORE, *POLICY)}
    assert left_out == {
        "ConfigMap", "CronJob", "DaemonSet", "Deployment", "Endpoints", "Job", "PodTemplate", "ReplicaSet",
        "ReplicationController", "Secret", "StatefulSet",
    }  # fmt: skip
    assert set(UNENFORCED) <= set(POLICY)
    assert {kind.group for kind in POLICY} == {*GROUPS}


def test_core_kinds_and_policy_kinds_with_a_crd_are_watched() -> None:
    """Other served kinds, such as Deployments, are not watched."""
    plan = planned(
        Plan(), ServedResources((TARGETS, Resource("apps", "v1", "deployments", "Deployment"))), NOW, HOLD
    )
    assert plan == Plan({**CORE, TRAFFIC_TARGET: TARGETS})


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
def test_newest_readable_version_is_watched(served: tuple[str, ...], chosen: str | None) -> None:
    """TrafficTarget v1alpha4 is a draft and is not read."""
    resource = newest(TRAFFIC_TARGET, _versions(*served))
    assert (None if resource is None else resource.version) == chosen


def test_unenforced_kind_is_watched_in_its_newest_version() -> None:
    """Only the existence of such objects is read, so any version will do."""
    kind = Kind("AccessCert", "policy.openservicemesh.io")
    old = Resource(kind.group, "v1alpha1", "accesscerts", kind.name)
    new = replace(old, version="v1beta1")
    assert planned(Plan(), ServedResources((old, new)), NOW, HOLD).watched[kind] == new


def test_new_crd_is_watched() -> None:
    """A newer version replaces the older one."""
    plan = planned(FIRST, ServedResources((*FIRST.watched.values(), _group("v1alpha3"))), NOW, HOLD)
    assert plan.watched[HTTP_ROUTE_GROUP] == _group("v1alpha3")
    both = ServedResources((*FIRST.watched.values(), _group("v1alpha3"), _group("v1alpha4")))
    assert planned(plan, both, NOW, HOLD).watched[HTTP_ROUTE_GROUP] == _group("v1alpha4")


def test_kind_no_longer_served_is_removed_after_the_hold() -> None:
    """A server that has just started may not know all of its CRDs yet, so the kind may return."""
    gone = ServedResources((*CORE.values(), WORKLOADS))
    doubted = planned(FIRST, gone, NOW, HOLD)
    assert doubted == Plan(FIRST.watched, {TRAFFIC_TARGET: NOW})
    assert planned(doubted, gone, NOW + HOLD / 2, HOLD) == doubted
    assert planned(doubted, ServedResources((*gone.resources, TARGETS)), NOW + HOLD / 2, HOLD) == FIRST
    assert planned(doubted, gone, NOW + HOLD, HOLD) == Plan({**CORE, WORKLOAD: WORKLOADS})
    assert planned(FIRST, gone, NOW, timedelta(0)) == Plan({**CORE, WORKLOAD: WORKLOADS})


def test_unknown_api_group_removes_no_kind() -> None:
    """An aggregated API server behind the main one may be unavailable for long."""
    unknown = ServedResources((*CORE.values(), WORKLOADS), frozenset({TRAFFIC_TARGET.group}))
    later = planned(FIRST, unknown, NOW, HOLD)
    assert planned(later, unknown, NOW + 9 * HOLD, HOLD) == FIRST


def test_kind_served_only_in_unreadable_versions_stays_and_is_reported() -> None:
    """Its objects still exist, although they cannot be read."""
    served = ServedResources((*CORE.values(), WORKLOADS, *_versions("v1", "v2alpha1").resources))
    assert planned(FIRST, served, NOW + 9 * HOLD, HOLD) == Plan(
        FIRST.watched, {}, {TRAFFIC_TARGET: ("v1", "v2alpha1")}
    )


def _group(version: str) -> Resource:
    return Resource(HTTP_ROUTE_GROUP.group, version, "httproutegroups", HTTP_ROUTE_GROUP.name)
