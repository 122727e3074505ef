"""Judgements of a cluster before an installation, and of other meshes in the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.cli.checking.judgements.check import Check, counted, listed
from meshwright.mesh.kinds import POD, Kind
from meshwright.sidecars.injection.context import NATIVE_SINCE
from meshwright.specs.kinds import READ

_NAMED: Final = 8
"""Most kinds to name in a line."""

RULES_SINCE: Final = (1, 25)
"""The first version of Kubernetes with validation rules (CEL) in definitions enabled by default."""
_KNOWN: Final[Mapping[str, str]] = {
    "istio.io": "Istio",
    "linkerd.io": "Linkerd",
    "osm-inject.k8s.io": "Open Service Mesh",
    "consul.hashicorp.com": "Consul",
    "kuma.io": "Kuma",
    "kuma-admission.kuma.io": "Kuma",
    "cilium.io": "Cilium",
}
"""Meshes by the end of their webhooks' names."""


@dataclass(frozen=True, slots=True)
class Injector:
    """A webhook for new Pods, its configuration, and whether its failure refuses Pods."""

    name: str
    configuration: str
    fails: bool = True


def api_server(version: tuple[int, int], text: str) -> Check:
    """Judge the API server's version."""
    name, message = "API server", f"Kubernetes {text}"
    if version < RULES_SINCE:
        need = ".".join(map(str, RULES_SINCE))
        return Check.failed(
            name,
            f"{message}: the validation rules of the CustomResourceDefinitions need {need}",
            f"upgrade to {need} or newer",
        )
    if version < NATIVE_SINCE:
        native = ".".join(map(str, NATIVE_SINCE))
        message += f": sidecars are ordinary containers, because native sidecars need {native}"
        return Check.warning(
            name, message, "see docs/start/injection.md for the limits of sidecars as ordinary containers"
        )
    return Check.ok(name, f"{message}, with native sidecars")


def other_meshes(injectors: Sequence[Injector], daemons: Sequence[str]) -> Check:
    """Judge whether the cluster has other meshes. `daemons` are DaemonSets with network rules for nodes."""
    name = "other meshes"
    meshes = [
        f"{mesh} ({injector.configuration})" for injector in injectors if (mesh := mesh_of(injector.name))
    ]
    meshes += [f"DaemonSet {daemon}" for daemon in daemons]
    if not meshes:
        return Check.ok(name, "no other mesh found")
    do = (
        "enable only one mesh in each namespace (docs/start/from-istio.md); Pods with a sidecar of another "
        "mesh are left unchanged"
    )
    return Check.warning(name, f"also installed: {listed(sorted(set(meshes)))}", do)


def mesh_of(webhook: str) -> str:
    """Return the mesh of a webhook by its name, or an empty string if unknown."""
    return next((mesh for end, mesh in _KNOWN.items() if webhook.endswith(end)), "")


def open_service_mesh(control_plane: Sequence[str], webhooks: Sequence[str], pods: int) -> Check:
    """Judge remains of Open Service Mesh: Deployments, webhook configurations, and Pods with OSM's sidecar.

    Webhooks without a running program behind them make API servers refuse objects.
    """
    name = "Open Service Mesh"
    if not (control_plane or webhooks or pods):
        return Check.ok(name, "not installed")
    with_sidecar = f"{counted(pods, POD.name)} with its sidecar"
    if webhooks and not control_plane:
        text = (
            f"its control plane is missing, but its webhooks are still registered: {listed(webhooks)}; "
            f"{with_sidecar}"
        )
        do = (
            "delete the webhooks, because API servers refuse the objects that these webhooks would "
            f"review: `kubectl delete {webhooks[0]}`"
        )
        return Check.failed(name, text, do)
    text = f"{listed(control_plane) or 'control plane not connected'}, {with_sidecar}"
    return Check.warning(
        name, text, "migrate as described in docs/start/from-osm.md: `meshwright migrate osm --kubernetes`"
    )


def conversions(result: Mapping[str, Sequence[str]], away: Sequence[str]) -> Check:
    """Judge conversions of kinds that the server reads, by Service.

    `away` are the Services without ready endpoints.
    """
    name = "conversion"
    do = (
        "remove the conversion webhook (docs/start/from-osm.md), and apply `meshwright crds`, which works "
        "without one"
    )
    if gone := {service: result[service] for service in away}:
        which = listed(sorted(kind for kinds in gone.values() for kind in kinds), _NAMED)
        text = (
            f"{listed(sorted(gone))} of the conversion webhook lacks a ready endpoint, so "
            f"objects of these kinds cannot be read: {which}"
        )
        return Check.failed(name, text, do)
    which = listed(sorted(kind for kinds in result.values() for kind in kinds), _NAMED)
    text = f"objects of these kinds can be read only while {listed(sorted(result))} answers: {which}"
    return Check.warning(name, text, do)


def gateway_api(served: Mapping[Kind, Sequence[str]]) -> Check:
    """Judge the served versions of the Gateway API's kinds, of which at least one is defined."""
    name = "Gateway API"
    if unread := _unread(served):
        do = "apply the definitions of release 1.7, standard channel (docs/policy/gateway-api.md)"
        return Check.failed(name, f"served only in versions that Meshwright does not read: {unread}", do)
    there = [str(kind) for kind, versions in served.items() if versions]
    missing = [str(kind) for kind, versions in served.items() if not versions]
    others = f"; not defined: {listed(missing, _NAMED)}" if missing else ""
    return Check.ok(name, f"{listed(there, _NAMED)} can be read{others}")


def _unread(served: Mapping[Kind, Sequence[str]]) -> str:
    """Return the kinds that are served only in versions without a reader, with these versions."""
    return listed(
        [
            f"{kind} ({', '.join(versions)})"
            for kind, versions in served.items()
            if versions and not set(versions) & set(READ[kind].versions)
        ]
    )


def kinds(served: Mapping[Kind, Sequence[str]], *, before: bool, other_release: str = "") -> Check:
    """Judge the served versions of all kinds that need a definition; a missing kind has no version.

    `other_release` is the installed version if it differs from ours; such a release may lack newer kinds.
    """
    name, do = "kinds", "`meshwright crds | kubectl apply --server-side -f -`"
    if unread := _unread(served):
        return Check.failed(name, f"served only in versions that Meshwright does not read: {unread}", do)
    missing = [str(kind) for kind, versions in served.items() if not versions]
    if missing and other_release:
        text = f"not defined, because version {other_release} is installed: {listed(missing, _NAMED)}"
        return Check.warning(name, text, "upgrade the installation to use these kinds")
    if missing and not before:
        return Check.failed(name, f"not defined: {listed(missing, _NAMED)}", do)
    # The last version of a reader is the newest one.
    older = [str(kind) for kind, versions in served.items() if READ[kind].versions[-1] not in (*versions,)]
    there = {kind: versions for kind, versions in served.items() if versions}
    if there and (others := [item for item in older if item not in missing]):
        text = f"defined only in older versions: {listed(others, _NAMED)}"
        return Check.warning(name, text, f"this works; to get the newest versions: {do}")
    if missing:
        return Check.ok(name, f"{len(there)} of {len(served)} are defined; the installation adds the others")
    return Check.ok(name, f"all {len(served)} are defined in the newest version")
