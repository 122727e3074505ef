"""Which rules a pod has of the node: those that its injection has noted; of others it is said why none."""

from typing import Any

import pytest

from meshwright.agent.interception.ports import PortRange
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.kubernetes.cni.decision import ForeignPod, decide, waits
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.workload import Capture
from meshwright.sidecars.contract.pod import RulesOwner
from meshwright.sidecars.envoy.driver import EnvoyDriver

ANNOTATIONS = {
    "meshwright.dev/interception-capture": "tproxy",
    "meshwright.dev/interception-ipv6": "true",
    "openservicemesh.io/outbound-port-exclusion-list": "6379",
}


def pod(rules_by: RulesOwner, **annotations: str) -> dict[str, Any]:
    """Return a pod as the API has it after its injection."""
    made: Any = {
        "metadata": {"name": "store-0", "uid": "u-1", "annotations": annotations},
        "spec": {"containers": [{"name": "store", "image": "store:1"}]},
    }
    known = InjectionInputs(InjectionConfig(image="proxy:1", rules_by=rules_by), {"envoy": EnvoyDriver()})
    patched: Any = injected(known, NAMESPACE, made).pod
    assert patched is not None
    return dict(patched)


NAMESPACE = NamespaceObject(Namespace("shop"))


def test_a_pod_has_the_rules_that_its_annotations_ask_for() -> None:
    """As its own init container would have set them."""
    by_address = Interception(families=frozenset(Family), ipv6_by_address=True)
    assert decide(pod(RulesOwner.CNI), "u-1") == by_address
    assert decide(pod(RulesOwner.CNI, **{"meshwright.dev/interception-ipv6": "false"}), "") == Interception()
    assert decide(pod(RulesOwner.CNI, **ANNOTATIONS), "") == Interception(
        capture=Capture.TPROXY,
        families=frozenset(Family),
        outbound_excluded=(PortRange(6379, 6379),),
    )


def test_of_all_others_nothing_is_touched() -> None:
    """And it is said why."""
    ours = pod(RulesOwner.CNI)
    cases: list[tuple[Any, str, str]] = [
        (None, "u-1", "the pod does not exist in the cluster"),
        (ours, "u-2", "the cluster has another pod with the same name"),
        ({**ours, "spec": {"hostNetwork": True}}, "u-1", "the pod uses the network of the node"),
        (
            pod(RulesOwner.INIT_CONTAINER),
            "u-1",
            "the pod does not have the annotation meshwright.dev/interception",
        ),
        ({}, "", "the pod does not have the annotation meshwright.dev/interception"),
    ]
    for found, uid, why in cases:
        assert decide(found, uid) == ForeignPod(why)


def test_what_is_not_understood_is_no_rules_at_all() -> None:
    """A pod of a later injection does not begin with fewer rules than it needs."""
    ours = pod(RulesOwner.CNI)
    ours["metadata"]["annotations"]["meshwright.dev/interception"] += " --dns"
    with pytest.raises(
        InterceptionError, match=r"annotation meshwright.dev/interception: unknown or repeated option '--dns'"
    ):
        decide(ours, "u-1")


def test_a_pod_waits_until_its_first_container_has_seen_its_rules() -> None:
    """One without an address cannot be found yet; those that have ended, or are none of ours, do not wait."""
    ours = pod(RulesOwner.CNI)

    def told(found: dict[str, Any], code: int | None = None, **status: Any) -> str:
        state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
        first = [{"name": "other", "state": {}}, {"name": "meshwright-init", "state": state}]
        return waits({**found, "status": {"podIP": "10.0.0.1", "initContainerStatuses": first, **status}})

    assert told(ours) == told(ours, 1) == told(ours, initContainerStatuses=[]) == "10.0.0.1"
    assert told(ours, podIP=None) == told(ours, 0) == told(ours, phase="Failed") == waits(ours) == ""
    assert told(pod(RulesOwner.INIT_CONTAINER)) == told({**ours, "spec": {"hostNetwork": True}}) == ""
