"""Tests of workloads: the name of their sidecar, and label selectors."""

import pytest

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import DEPLOYMENT
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName
from meshwright.mesh.workload import PodTemplate, Workload, WorkloadKey
from tests.meshes import values as a

LABELS = (("app", "shop"), ("tier", "x"))


def workload() -> Workload:
    """Return a workload with different names for its primary service, account and itself."""
    return a.workload("w", "10.0.0.1", primary="shop", account="seller", namespace="mall")


def test_proxy_name_has_uuid_primary_service_and_namespace() -> None:
    """The proxy name is the common name of the sidecar's certificate."""
    named = ProxyName(ProxyUuid("w-uuid"), ServiceName("shop"), Namespace("mall"))
    assert (workload().proxy_name, str(named)) == (named, "w-uuid.shop.mall")
    assert named == ProxyName.parse(str(named))


def test_workload_without_a_sidecar_has_no_proxy_name() -> None:
    """Such a workload may be called but may not call."""
    assert a.workload("w", "10.0.0.1", sidecar=False).proxy_name is None


@pytest.mark.parametrize(
    ("selector", "means"),
    [
        (LABELS, True),
        (LABELS[:1], True),
        ((("app", "bank"),), False),
        ((*LABELS, ("more", "y")), False),
        ((("app", "x"),), False),  # a value of another label
        ((), False),  # without a selector, endpoints have another source
    ],
)
def test_selector_matches_workloads_with_all_its_labels(
    selector: tuple[tuple[str, str], ...], means: bool
) -> None:
    """The same holds for templates of future Pods; an empty selector matches none."""
    one = a.workload("w", "10.0.0.1")
    running = Workload(one.key, one.identity, one.service, one.address, labels=LABELS)
    coming = PodTemplate(DEPLOYMENT, WorkloadKey(a.DEFAULT, "w"), one.identity, LABELS)
    assert (running.has_labels(selector), coming.has_labels(selector)) == (means, means)
    assert str(coming) == "Deployment default/w"
