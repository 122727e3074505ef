"""What runs: its sidecar's name, and whether a selector means it."""

import pytest

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import DEPLOYMENT
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName
from meshwright.mesh.workload import PodTemplate, Workload, WorkloadKey
from tests.meshes import values as a

LABELS = (("app", "shop"), ("tier", "x"))


def workload() -> Workload:
    """Return one whose primary service, account and name differ."""
    return a.workload("w", "10.0.0.1", primary="shop", account="seller", namespace="mall")


def test_a_sidecar_is_named_by_uuid_primary_service_and_namespace() -> None:
    """Not by the workload or its account; it is the common name of its certificate."""
    named = ProxyName(ProxyUuid("w-uuid"), ServiceName("shop"), Namespace("mall"))
    assert (workload().proxy_name, str(named)) == (named, "w-uuid.shop.mall")
    assert named == ProxyName.parse(str(named))


def test_without_a_sidecar_there_is_no_name() -> None:
    """It may be called and may not call."""
    assert a.workload("w", "10.0.0.1", sidecar=False).proxy_name is None


@pytest.mark.parametrize(
    ("selector", "means"),
    [
        (LABELS, True),
        (LABELS[:1], True),
        ((("app", "bank"),), False),
        ((*LABELS, ("more", "y")), False),
        ((("app", "x"),), False),  # a value of another label
        ((), False),  # selects nobody: endpoints come from elsewhere
    ],
)
def test_a_selector_means_who_carries_all_of_it(selector: tuple[tuple[str, str], ...], means: bool) -> None:
    """Workloads, and templates of pods that are not there yet."""
    one = a.workload("w", "10.0.0.1")
    running = Workload(one.key, one.identity, one.service, one.address, labels=LABELS)
    coming = PodTemplate(DEPLOYMENT, WorkloadKey(a.DEFAULT, "w"), one.identity, LABELS)
    assert (running.has_labels(selector), coming.has_labels(selector)) == (means, means)
    assert str(coming) == "Deployment default/w"
