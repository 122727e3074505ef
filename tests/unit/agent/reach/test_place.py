"""Tests of remedies by place: files and programs of a machine, or kubectl for a pod."""

from pathlib import Path

import pytest

from meshwright.agent.reach.place import Place, place, remedy
from meshwright.agent.reach.reasons import Reason, UnreachableReason
from meshwright.mesh.host_port import HostPort

AT = HostPort("meshwright.mesh.svc", 15128)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("", Place.MACHINE),
        ("etc/meshwright/credentials", Place.MACHINE),
        ("etc/meshwright/pod", Place.POD),
        ("var/run/secrets/meshwright", Place.POD),
    ],
)
def test_pod_is_known_by_the_injector_s_mounts(tmp_path: Path, made: str, expected: Place) -> None:
    """Only the injector's mounts make it a pod, because a machine can itself be a Pod of another cluster."""
    (tmp_path / made).mkdir(parents=True, exist_ok=True)
    assert place(tmp_path) is expected


@pytest.mark.parametrize("reason", Reason)
def test_remedies_in_a_pod_use_kubernetes(reason: Reason) -> None:
    """A pod's remedies use kubectl or `meshwright check --kubernetes`.

    Certificates and files are not handled by hand there.
    """
    why = UnreachableReason(reason, "it is so", "have the machine join again, mend --ads, issue it anew")
    assert remedy(why, AT, Place.MACHINE) == why.do
    message = remedy(why, AT, Place.POD)
    neutral = {Reason.NOT_TRANSLATED, Reason.NOTHING_TO_SERVE, Reason.BUSY, Reason.NOT_SERVING}
    neutral |= {Reason.NO_HANDSHAKE, Reason.SERVER_EXPIRED, Reason.SERVER_NOT_YET_VALID}
    neutral |= {Reason.NOT_YET_VALID, Reason.REFUSED}
    assert (message == why.do) is (reason in neutral)
    assert reason in neutral or "kubectl" in message or "meshwright check --kubernetes" in message


def test_remedy_names_the_namespace_of_the_control_plane() -> None:
    """The namespace is taken from the control plane's name; for an address it is the chart's default."""
    why = UnreachableReason(Reason.PORT_CLOSED, "", "start `meshwright serve` there")
    assert "kubectl get pods -n mesh" in remedy(why, AT, Place.POD)
    assert "-n meshwright-system" in remedy(why, HostPort("10.0.0.1", 15128), Place.POD)
