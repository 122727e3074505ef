"""Permissions in a cluster: for installing manifests, and granted by roles in manifests."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from meshwright.cli.checking.judgements.check import Check, UnavailableCheck, counted, listed
from meshwright.mesh.kinds import EXPERIMENTAL_GATEWAY_API, GATEWAY_API
from meshwright.specs.reference.meanings.definitions import INSTALLED

_OF_DEFINITIONS: Final = {GATEWAY_API, EXPERIMENTAL_GATEWAY_API, *(kind.group for kind in INSTALLED)}
"""Groups with kinds that a cluster may lack; the others are built into Kubernetes."""

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """One verb on one resource, for example `workloads/status`; `namespace` and `name` are empty for all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        of = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {of}" + (f" in {self.namespace}" if self.namespace else "")


def group_of(manifest: Manifest) -> str:
    """Return an object's API group, empty for Kubernetes' core group."""
    return str(manifest["apiVersion"]).rpartition("/")[0]


def to_apply(manifests: Iterable[Manifest], plurals: Mapping[tuple[str, str], str]) -> tuple[Need, ...]:
    """Return the permissions for applying manifests; `plurals` are the served resources by group and kind."""
    needs = {
        Need(verb, group, plurals[group, kind], manifest["metadata"].get("namespace", ""))
        for manifest in manifests
        if (kind := str(manifest["kind"])) and (group := group_of(manifest), kind) in plurals
        # kubectl apply creates missing objects, and patches existing ones.
        for verb in ("create", "patch")
    }
    return tuple(sorted(needs))


def unserved(manifests: Iterable[Manifest], plurals: Mapping[tuple[str, str], str]) -> tuple[str, ...]:
    """Return the kinds that neither the cluster serves nor the manifests define."""
    given = list(manifests)
    defined = {
        (item["spec"]["group"], item["spec"]["names"]["kind"])
        for item in given
        if item["kind"] == "CustomResourceDefinition"
    }
    kinds = {(group_of(item), str(item["kind"])) for item in given} - defined - plurals.keys()
    return tuple(sorted(f"{kind}.{group}" if group else kind for group, kind in kinds))


def granted(manifests: Iterable[Manifest]) -> tuple[Need, ...]:
    """Return the permissions granted by roles among the manifests."""
    return tuple(sorted(set(_granted(manifests))))


def needed(granted: Iterable[Need], served: Container[tuple[str, str]]) -> tuple[Need, ...]:
    """Return the permissions without those for kinds that the cluster does not serve.

    `served` are pairs of a group and a resource. The kinds of the Gateway API are not ours to install. Of our
    own kinds a release before lacks the newest, and has no permissions for them.
    """
    return tuple(
        need
        for need in granted
        if need.group not in _OF_DEFINITIONS or (need.group, need.resource.partition("/")[0]) in served
    )


def _granted(manifests: Iterable[Manifest]) -> Iterator[Need]:
    for manifest in manifests:
        if manifest["kind"] not in ("Role", "ClusterRole"):
            continue
        namespace = manifest["metadata"].get("namespace", "")
        for rule in manifest["rules"]:
            for group in rule.get("apiGroups", ()):
                for resource in rule.get("resources", ()):
                    for verb in rule["verbs"]:
                        # A rule without resourceNames applies to all names.
                        for name in rule.get("resourceNames", [""]):
                            yield Need(verb, group, resource, namespace, name)


def permitted(
    name: str,
    account: str,
    answers: Mapping[Need, bool | UnavailableCheck],
    do: str,
    unknown: Sequence[str] = (),
    values: str = "",
) -> Check:
    """Judge the authorizer's answer to each need.

    `unknown` are kinds missing in the cluster. `values` is the origin of the chart's values, if it is shown.
    """
    if unknown:
        text = f"the cluster does not serve {listed(unknown)}"
        return Check.failed(
            name, text, "install the CustomResourceDefinition first, or remove the object from the values"
        )
    origin = f"; values {values}" if values else ""
    denied = [str(need) for need, answer in answers.items() if answer is False]
    if denied:
        return Check.failed(name, f"{account} may not: {listed(denied, 5)}{origin}", do)
    if unseen := next((item for item in answers.values() if isinstance(item, UnavailableCheck)), None):
        return Check.unseen(name, unseen)
    count = counted(len(answers), "permission")
    return Check.ok(name, f"{account} may do everything that is needed ({count}{origin})")
