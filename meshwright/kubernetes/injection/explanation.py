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
    MISSING = "it lacks a sidecar, but a new Pod would get one"
    NOT_WANTED = "it has a sidecar, but a new Pod would not get one"
    OTHER = "its sidecar is outdated: a new Pod would get a different one"

    @property
    def is_right(self) -> bool:
        """Return whether the running Pod has, or lacks, a sidecar exactly as a new Pod would."""
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
    result: str = ""


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
    def is_selected(self) -> bool:
        """Return whether an API server would send the Pod to a webhook; True if unknown."""
        return self.webhooks is None or any(not webhook.why_not for webhook in self.webhooks)

    @property
    def gets_one(self) -> bool:
        """Return whether the Pod gets a sidecar at its creation: by the webhooks and by the rules."""
        return self.is_selected and self.answer.result in (Result.INJECTED, Result.UNCHANGED)


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
    response = answer(known, namespace, document, ends=ends)
    steps, overlays = tuple[Step, ...](), tuple[str, ...]()
    try:
        pod = checked(document)
        steps = tuple(_steps(known, namespace, pod))
        result = chosen(known.config.overlays, known.config.default_overlays, namespace, pod)
        overlays = tuple(overlay.name for overlay in result)
    except CannotPatchError:
        pod = None  # the answer has the reason
    webhooks = None
    if registered is not None:
        webhooks = tuple(
            webhook_match for one in registered for webhook_match in match_webhooks(one, namespace, document)
        )
    made = Explanation(steps, response, overlays, webhooks)
    if not runs or pod is None:
        return made
    standing, other = _standing(known, namespace, pod, made)
    return replace(made, standing=standing, differences=other)


def _steps(known: InjectionInputs, namespace: NamespaceObject, pod: Pod) -> Iterator[Step]:
    for rule, asked in rules(known.config, namespace, pod):
        try:
            decision = asked()
        except CannotPatchError as error:
            yield Step(rule, f"refused: {error}")
            return
        yield Step(
            rule, "" if decision is None else f"{'yes' if decision.inject else 'no'}: {decision.words}"
        )
        if decision is not None:
            return


def _standing(
    known: InjectionInputs, namespace: NamespaceObject, pod: Pod, made: Explanation
) -> tuple[SidecarDrift, tuple[Difference, ...]]:
    has = is_patched(pod)
    if has != made.gets_one:
        return SidecarDrift.NOT_WANTED if has else SidecarDrift.MISSING, ()
    other = differences(known, namespace, pod) if has else ()
    return SidecarDrift.OTHER if other else SidecarDrift.AS_WANTED, other or ()


def match_webhooks(
    configuration: Mapping[str, Any], namespace: NamespaceObject, document: Mapping[str, Any]
) -> Iterator[WebhookMatch]:
    """Yield Meshwright's webhooks in a configuration, each with the reason why it does not select the Pod."""
    name = str(configuration.get("metadata", {}).get("name", ""))
    theirs = {**dict(namespace.labels), NAME_LABEL: namespace.name}
    own = (document.get("metadata") or {}).get("labels") or {}
    for webhook in configuration.get("webhooks") or ():
        if not str(webhook.get("name", "")).endswith(OURS):
            continue
        sides = (
            ("the namespace", webhook.get("namespaceSelector") or {}, theirs),
            ("the pod", webhook.get("objectSelector") or {}, own),
        )
        why = next((f"{whose}: {text}" for whose, of, labels in sides if (text := _unfit(of, labels))), "")
        yield WebhookMatch(name, str(webhook["name"]), why)


def _unfit(selector: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the label that does not match a selector, as a sentence; empty if all match."""
    for requirement in required(selector):
        if not requirement.holds(labels):
            result = labels.get(requirement.key)
            has = "the label is missing" if result is None else f"the label is {result!r}"
            return f"label {requirement.key} must be {_must(requirement)}, but {has}"
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
