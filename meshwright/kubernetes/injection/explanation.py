"""Explanation why a Pod has, gets or lacks a sidecar: webhooks, rules, and the result."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from meshwright.kubernetes.injection.comparison import Difference, differences
from meshwright.kubernetes.injection.configuration.configuration import Identity
from meshwright.kubernetes.injection.configuration.overlays import chosen
from meshwright.kubernetes.injection.decision import rules
from meshwright.kubernetes.injection.pod_injection import TO_COME, InjectionInputs
from meshwright.kubernetes.injection.selectors import Operator, Requirement, required
from meshwright.kubernetes.injection.shapes import checked
from meshwright.kubernetes.injection.webhook.review import Answer, Result, answer
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.injection.restoration import is_patched

NAME_LABEL: Final = "kubernetes.io/metadata.name"
OURS: Final = ".inject.meshwright.dev"


class SidecarDrift(enum.StrEnum):
    """Comparison of a running Pod with the Pod that the injector would create now."""

    AS_WANTED = "its sidecar is up to date"
    MISSING = "it has no sidecar, but a new Pod would get one"
    NOT_WANTED = "it has a sidecar, but a new Pod would get none"
    OTHER = "its sidecar is outdated: a new Pod would get a different one"

    @property
    def is_right(self) -> bool:
        """Return whether the Pod is as it should be."""
        return self is SidecarDrift.AS_WANTED


@dataclass(frozen=True, slots=True)
class WebhookMatch:
    """A webhook of a MutatingWebhookConfiguration, with the reason why it does not select a Pod, or empty."""

    configuration: str
    webhook: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A rule of the decision and its result, which is empty if the rule does not apply."""

    rule: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole explanation.

    `webhooks` is None without a cluster, and `standing` is None for a Pod in a manifest. `differences`
    compares the Pod's sidecar with the sidecar that the Pod would get now.
    """

    steps: tuple[Step, ...]
    answer: Answer
    overlays: tuple[str, ...] = ()
    webhooks: tuple[WebhookMatch, ...] | None = None
    standing: SidecarDrift | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Return whether an API server would send the Pod to a webhook; True if unknown."""
        return self.webhooks is None or any(not each.why_not for each in self.webhooks)

    @property
    def gets_one(self) -> bool:
        """Return whether the Pod gets a sidecar at its creation."""
        return self.is_asked and self.answer.result in (Result.INJECTED, Result.UNCHANGED)


def explained(
    known: InjectionInputs,
    namespace: NamespaceObject,
    document: Mapping[str, Any],
    registered: tuple[Mapping[str, Any], ...] | None = None,
    *,
    runs: bool = False,
    ends: bool = False,
) -> Explanation:
    """Explain the injection of a Pod.

    `registered` are MutatingWebhookConfigurations. `runs`: the Pod exists in the cluster. `ends`: the Pod is
    expected to end by itself, for example in a Job.
    """
    if known.config.identity is Identity.SECRET:
        known = replace(known, uuid=TO_COME)
    said = answer(known, namespace, document, ends=ends)
    steps, overlays = tuple[Step, ...](), tuple[str, ...]()
    try:
        pod = checked(document)
        steps = tuple(_steps(known, namespace, pod))
        found = chosen(known.config.overlays, known.config.default_overlays, namespace, pod)
        overlays = tuple(each.name for each in found)
    except CannotPatchError:
        pod = None  # the answer has the reason
    webhooks = None
    if registered is not None:
        webhooks = tuple(each for one in registered for each in asked(one, namespace, document))
    made = Explanation(steps, said, overlays, webhooks)
    if not runs or pod is None:
        return made
    standing, other = _standing(known, namespace, pod, made)
    return replace(made, standing=standing, differences=other)


def _steps(known: InjectionInputs, namespace: NamespaceObject, pod: Pod) -> Iterator[Step]:
    for rule, asked in rules(known.config, namespace, pod):
        try:
            said = asked()
        except CannotPatchError as error:
            yield Step(rule, f"refused: {error}")
            return
        yield Step(rule, "" if said is None else f"{'yes' if said.inject else 'no'}: {said.words}")
        if said is not None:
            return


def _standing(
    known: InjectionInputs, namespace: NamespaceObject, pod: Pod, made: Explanation
) -> tuple[SidecarDrift, tuple[Difference, ...]]:
    has = is_patched(pod)
    if has != made.gets_one:
        return SidecarDrift.NOT_WANTED if has else SidecarDrift.MISSING, ()
    other = differences(known, namespace, pod) if has else ()
    return SidecarDrift.OTHER if other else SidecarDrift.AS_WANTED, other or ()


def asked(
    configuration: Mapping[str, Any], namespace: NamespaceObject, document: Mapping[str, Any]
) -> Iterator[WebhookMatch]:
    """Yield our webhooks in a configuration, with the result of their selectors for the Pod."""
    name = str(configuration.get("metadata", {}).get("name", ""))
    theirs = {**dict(namespace.labels), NAME_LABEL: namespace.name}
    own = (document.get("metadata") or {}).get("labels") or {}
    for each in configuration.get("webhooks") or ():
        if not str(each.get("name", "")).endswith(OURS):
            continue
        sides = (
            ("the namespace", each.get("namespaceSelector") or {}, theirs),
            ("the pod", each.get("objectSelector") or {}, own),
        )
        why = next((f"{whose}: {said}" for whose, of, labels in sides if (said := _unfit(of, labels))), "")
        yield WebhookMatch(name, str(each["name"]), why)


def _unfit(selector: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the label that does not match a selector, as a sentence; empty if all match."""
    for each in required(selector):
        if not each.holds(labels):
            found = labels.get(each.key)
            has = "the label is missing" if found is None else f"the label is {found!r}"
            return f"label {each.key} must be {_must(each)}, but {has}"
    return ""


def _must(wanted: Requirement) -> str:
    match wanted.operator:
        case Operator.IN:
            return " or ".join(map(repr, wanted.values))
        case Operator.NOT_IN:
            return "other than " + ", ".join(map(repr, wanted.values))
        case Operator.EXISTS:
            return "present"
        case Operator.DOES_NOT_EXIST:
            return "absent"
