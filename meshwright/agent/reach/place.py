"""The environment of an agent, a machine or a Pod, so that remedies name tools that exist there."""

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from meshwright.agent.reach.reasons import Reason, UnreachableReason
from meshwright.mesh.host_port import HostPort

_OF_A_POD: Final = ("/etc/meshwright/pod", "/var/run/secrets/meshwright")
"""Directories in every sidecar, mounted by the injector, and missing on machines."""


class Place(enum.Enum):
    """The kind of installation of the agent.

    MACHINE: a person installed the agent. POD: the injector did, and operators use kubectl.
    """

    MACHINE = enum.auto()
    POD = enum.auto()


def place(root: Path = Path("/")) -> Place:
    """Return POD if the injector's mounts exist below `root`, otherwise MACHINE."""
    result = any((root / item.lstrip("/")).is_dir() for item in _OF_A_POD)
    return Place.POD if result else Place.MACHINE


def remedy(why: UnreachableReason, control_plane: HostPort, where: Place) -> str:
    """Return the remedy for an unreachable control plane."""
    if where is Place.MACHINE or (do := _IN_A_POD.get(why.reason)) is None:
        return why.do
    return do.format(host=control_plane.host, namespace=_namespace(control_plane.host))


def _namespace(host: str) -> str:
    """Return the namespace in a Service's name (`mesh` in `meshwright.mesh.svc`), or the chart's default."""
    labels = host.split(".")
    return labels[1] if len(labels) > 1 and not labels[-1].isdigit() else "meshwright-system"


_RESTART: Final = (
    "run `kubectl rollout restart` for the controller of the Pod: the new agent enrols "
    "with the Pod's own token"
)
_RUNS: Final = "check that the control plane is ready: `kubectl get pods -n {namespace}`"
_NEW_CA: Final = f"if the control plane has a new CA, for example after the loss of its volume: {_RESTART}"
_BEHIND: Final = "check the endpoints of Service {host}: `kubectl get endpointslices -n {namespace}`"
_IN_A_POD: Final[Mapping[Reason, str]] = {
    Reason.NAME_NOT_FOUND: "check that Service {host} exists (`kubectl get services -n {namespace}`), "
    "and that the DNS of the cluster works",
    Reason.PORT_CLOSED: _RUNS,
    Reason.NO_ROUTE: f"{_RUNS}, and that no NetworkPolicy blocks this Pod",
    Reason.NO_ANSWER: f"{_RUNS}, and that no NetworkPolicy blocks this Pod",
    Reason.ANOTHER_SERVICE: _BEHIND,
    Reason.SERVER_OF_ANOTHER_CA: _NEW_CA,
    Reason.SERVER_OF_ANOTHER_NAME: _BEHIND,
    Reason.EXPIRED: _RESTART,
    Reason.NOT_ACCEPTED: _NEW_CA,
    Reason.REVOKED: f"if that was a mistake: {_RESTART}",
    Reason.NOT_ISSUED: f"the ledger of the control plane was lost or replaced: {_RESTART}",
    Reason.UNCLAIMED: _RESTART,
    Reason.OTHER_WORKLOAD: f"the labels or the ServiceAccount of the Pod have changed: {_RESTART}",
    Reason.WORKLOAD_UNKNOWN: "check that the namespace of the Pod is part of the mesh: `meshwright check "
    "--kubernetes` (line `namespaces`)",
}
"""Remedies in a Pod by reason; for other reasons the remedies for machines apply."""
