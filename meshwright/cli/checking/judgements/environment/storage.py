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


def volume(wanted: str | None, storage_classes: Sequence[StorageClass]) -> Check:
    """Judge whether a volume can be created for the control plane's state.

    `wanted` is the StorageClass in the installation's claim, empty for the cluster's default, and None if the
    installation has no claim.
    """
    name, there = "volume", listed(sorted(storage_class.name for storage_class in storage_classes)) or "none"
    if wanted is None:
        return Check.ok(name, "not needed, because the values have no volume claim")
    if wanted:
        if any(storage_class.name == wanted for storage_class in storage_classes):
            return Check.ok(name, f"StorageClass {wanted} exists")
        do = "set persistence.storageClassName to an existing StorageClass"
        return Check.failed(name, f"StorageClass {wanted} does not exist; the cluster has: {there}", do)
    if defaults := sorted(storage_class.name for storage_class in storage_classes if storage_class.default):
        return Check.ok(name, f"StorageClass {listed(defaults)} is the cluster's default")
    do = (
        "set persistence.storageClassName, make one StorageClass the default, or set "
        "persistence.enabled=false for a trial"
    )
    return Check.failed(
        name,
        f"the cluster lacks a default StorageClass, so the Pod would stay Pending; the cluster has: {there}",
        do,
    )


def definitions(foreign: Sequence[str], *, installed: bool) -> Check:
    """Judge whether Helm can install; `foreign` are the chart's definitions that no release created.

    `installed`: the values install definitions (`crds.install`).
    """
    name = "definitions"
    if not foreign:
        return Check.ok(name, "no CustomResourceDefinition of another owner is in the way of the chart")
    text = f"{counted(len(foreign), 'CustomResourceDefinition')} of another owner: {listed(foreign, _NAMED)}"
    if not installed:
        return Check.ok(name, f"{text}; the chart leaves them unchanged (crds.install is false)")
    do = (
        "install with crds.install=false, otherwise Helm fails with `cannot be imported into the "
        "current release`; to install Meshwright's versions: `meshwright crds | kubectl apply "
        "--server-side --force-conflicts -f -`"
    )
    return Check.warning(name, f"{text}, so `helm install` would fail", do)
