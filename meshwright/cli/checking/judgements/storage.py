"""Judgements of an installation's needs: a volume, and CustomResourceDefinitions for Helm to own."""

from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.cli.checking.judgements.check import Check, counted, listed

_NAMED = 8
"""Most definitions to name."""


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass: the name, and whether it is the cluster's default."""

    name: str
    default: bool = False


def volume(wanted: str | None, found: Sequence[StorageClass]) -> Check:
    """Judge whether a volume can be created for the control plane's state.

    `wanted` is the StorageClass in the installation's claim, empty for the cluster's default, and None if the
    installation has no claim.
    """
    name, there = "volume", listed(sorted(each.name for each in found)) or "none"
    if wanted is None:
        return Check.ok(name, "none is asked for (persistence.enabled is false)")
    if wanted:
        if any(each.name == wanted for each in found):
            return Check.ok(name, f"StorageClass {wanted} is there")
        do = "name one that is there with persistence.storageClassName"
        return Check.failed(name, f"StorageClass {wanted} is not there; there are: {there}", do)
    if defaults := sorted(each.name for each in found if each.default):
        return Check.ok(name, f"StorageClass {listed(defaults)} is the cluster's default")
    do = (
        "name one with persistence.storageClassName, make one the default, "
        "or, to try it out, set persistence.enabled=false"
    )
    return Check.failed(
        name,
        f"there is no default StorageClass, and the Pod would be Pending for ever; there are: {there}",
        do,
    )


def definitions(foreign: Sequence[str], *, installed: bool) -> Check:
    """Judge whether Helm can install; `foreign` are the chart's definitions that no release created.

    `installed`: the values install definitions (`crds.install`).
    """
    name = "definitions"
    if not foreign:
        return Check.ok(name, "none is there that the chart would have to take over")
    said = f"{counted(len(foreign), 'CustomResourceDefinition')} of somebody else: {listed(foreign, _NAMED)}"
    if not installed:
        return Check.ok(name, f"{said}; the values leave them alone (crds.install is false)")
    do = (
        "install with crds.install=false, or Helm ends with `cannot be imported into the current release`; "
        "`meshwright crds | kubectl apply --server-side --force-conflicts -f -` brings our versions"
    )
    return Check.warning(name, f"{said}, and `helm install` would fail on them", do)
