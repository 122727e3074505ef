"""Tests of the CNI daemon's decision: which interception rules a pod gets, and why another pod gets none."""

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
    """Return a pod as the API server has it after injection."""
    made: Any = {
        "metadata": {"name": "store-0", "uid": "u-1", "annotations": annotations},
        "spec": {"containers": [{"name": "store", "image": "store:1"}]},
    }
    known = InjectionInputs(InjectionConfig(image="proxy:1", rules_by=rules_by), {"envoy": EnvoyDriver()})
    patched: Any = injected(known, NAMESPACE, made).pod
    assert patched is not None
    return dict(patched)


NAMESPACE = NamespaceObject(Namespace("shop"))


def test_pod_gets_the_rules_that_its_annotations_request() -> None:
    """The rules follow the pod's annotations, exactly as its init container would have set them."""
    by_address = Interception(families=frozenset(Family), ipv6_by_address=True)
    assert decide(pod(RulesOwner.CNI), "u-1") == by_address
    assert decide(pod(RulesOwner.CNI, **{"meshwright.dev/interception-ipv6": "false"}), "") == Interception()
    assert decide(pod(RulesOwner.CNI, **ANNOTATIONS), "") == Interception(
        capture=Capture.TPROXY,
        families=frozenset(Family),
        outbound_excluded=(PortRange(6379, 6379),),
    )


def test_other_pods_get_no_rules_and_a_reason() -> None:
    """The decision for a pod that is not ours names the reason.

    Examples are a missing pod, another uid, the host's network, and a pod without our annotation.
    """
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
    for result, uid, why in cases:
        assert decide(result, uid) == ForeignPod(why)


def test_unknown_interception_option_is_an_error() -> None:
    """A pod of a newer injector must not start with fewer rules than it needs."""
    ours = pod(RulesOwner.CNI)
    ours["metadata"]["annotations"]["meshwright.dev/interception"] += " --dns"
    with pytest.raises(
        InterceptionError, match=r"annotation meshwright.dev/interception: unknown or repeated option '--dns'"
    ):
        decide(ours, "u-1")


def test_pod_waits_until_its_init_container_has_succeeded() -> None:
    """An injected pod with an address waits until its init container has exited with 0.

    A pod without an address, a failed pod and a pod that is not intercepted do not wait.
    """
    ours = pod(RulesOwner.CNI)

    def told(result: dict[str, Any], code: int | None = None, **status: Any) -> str:
        state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
        first = [{"name": "other", "state": {}}, {"name": "meshwright-init", "state": state}]
        return waits({**result, "status": {"podIP": "10.0.0.1", "initContainerStatuses": first, **status}})

    assert told(ours) == told(ours, 1) == told(ours, initContainerStatuses=[]) == "10.0.0.1"
    assert told(ours, podIP=None) == told(ours, 0) == told(ours, phase="Failed") == waits(ours) == ""
    assert told(pod(RulesOwner.INIT_CONTAINER)) == told({**ours, "spec": {"hostNetwork": True}}) == ""
