"""Why a pod has a sidecar, gets one, or does not: who is asked about it, each rule, what comes of it."""

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
    """How a pod that there is stands to what the injector would make of it now."""

    AS_WANTED = "as it would be if it were made anew"
    MISSING = "has no sidecar, and would get one if it were made anew"
    NOT_WANTED = "has a sidecar, and would get none if it were made anew"
    OTHER = "has another sidecar than it would get if it were made anew"

    @property
    def is_right(self) -> bool:
        """Say whether nothing is to be done."""
        return self is SidecarDrift.AS_WANTED


@dataclass(frozen=True, slots=True)
class WebhookMatch:
    """A webhook of a MutatingWebhookConfiguration, and why it is not asked about a pod, empty if it is."""

    configuration: str
    webhook: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A rule of the decision and what it said, empty for nothing."""

    rule: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of it; `webhooks` is None where no cluster was asked, `standing` where the pod is a manifest.

    `differences` are those between the sidecar that is there and the one it would get.
    """

    steps: tuple[Step, ...]
    answer: Answer
    overlays: tuple[str, ...] = ()
    webhooks: tuple[WebhookMatch, ...] | None = None
    standing: SidecarDrift | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Say whether an API server would ask about the pod at all, as far as that is known."""
        return self.webhooks is None or any(not each.why_not for each in self.webhooks)

    @property
    def gets_one(self) -> bool:
        """Say whether the pod gets a sidecar as it is made."""
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
    """Explain; `registered` are MutatingWebhookConfigurations, and `runs` says that the pod is there.

    `ends` says that it is to end by itself, as a Job's.
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
        pod = None  # the answer says why
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
    """Yield the webhooks of ours in a configuration, and whether their selectors take the pod."""
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
    """Say what does not fit, empty if all does."""
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
            return "none of " + ", ".join(map(repr, wanted.values))
        case Operator.EXISTS:
            return "there"
        case Operator.DOES_NOT_EXIST:
            return "absent"
