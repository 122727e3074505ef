"""Injection in manifests: their Pods and Pod templates get sidecars, and everything else stays unchanged."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from meshwright.kubernetes.injection.namespaces import namespace_of
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, PodInjection, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError, DriverError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.injection.restoration import is_patched, restored

Manifest = Mapping[str, Any]

_TEMPLATE: Final = ("spec", "template")
TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps.openshift.io", "DeploymentConfig"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "Job"): _TEMPLATE,
}
"""Path of the Pod in objects that contain or create Pods, by API group and kind."""
_TYPE: Final = ("apiVersion", "kind")
_END: Final = frozenset({"CronJob", "Job"})

Change = Callable[[Pod, "Place"], tuple[Pod | None, "InjectionResult"]]


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """Result of injection for one object of a manifest: whether changed, the reason, and warnings."""

    subject: str
    changed: bool
    why: str
    failed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A manifest after injection, with the result for each object that has Pods."""

    manifest: Manifest
    results: tuple[InjectionResult, ...] = ()

    @property
    def changed(self) -> bool:
        """Return whether any object of the manifest got a sidecar or another change."""
        return any(result.changed for result in self.results)


def inject(
    known: InjectionInputs, namespaces: Mapping[str, NamespaceObject], manifest: object, default: str
) -> Outcome:
    """Return a manifest with sidecars. Errors become results of the objects.

    `namespaces` are the known namespaces by name. `default` is the namespace of objects without one.
    """

    def change(pod: Pod, place: Place) -> tuple[Pod | None, InjectionResult]:
        of = namespaces.get(place.namespace, NamespaceObject(Namespace(place.namespace)))
        pod_injection: PodInjection = injected(known, of, pod, ends=place.ends)
        result = InjectionResult(
            place.subject,
            pod_injection.pod is not None,
            pod_injection.decision.words,
            warnings=pod_injection.warnings,
        )
        return pod_injection.pod, result

    return _changed(manifest, default, change)


def uninject(manifest: object, default: str) -> Outcome:
    """Return a manifest without sidecars, as its author wrote it. Errors become results of the objects."""

    def change(pod: Pod, place: Place) -> tuple[Pod | None, InjectionResult]:
        if not is_patched(pod):
            return None, InjectionResult(
                place.subject, changed=False, why="the object lacks an injected sidecar"
            )
        return checked(restored(pod)), InjectionResult(
            place.subject, changed=True, why="the sidecar is removed"
        )

    return _changed(manifest, default, change)


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a Pod: the object in words, its namespace and kind, and the path of the Pod in it."""

    subject: str
    namespace: str
    kind: str
    path: tuple[str, ...]

    @property
    def ends(self) -> bool:
        """Return whether the object's Pods are expected to end by themselves."""
        return self.kind in _END


def pods_in(manifest: object, default: str) -> Iterator[tuple[Place, object]]:
    """Yield the Pods in a manifest, also inside controllers and Lists, or None for a missing Pod.

    The Pods are unchecked. `default` is the namespace of objects without one.
    """
    for document in objects_in(manifest):
        if (place := _place(document, default)) is not None:
            try:
                yield place, _at(document, place.path)
            except CannotPatchError:
                yield place, None


def namespaces_in(manifests: Iterator[object]) -> Mapping[str, NamespaceObject]:
    """Return the namespaces that manifests define, with their labels and annotations."""
    namespaces = {}
    for manifest in manifests:
        for document in objects_in(manifest):
            if document.get("apiVersion") == "v1" and document.get("kind") == "Namespace":
                defined = namespace_of(checked(document))
                namespaces[str(defined.name)] = defined
    return namespaces


def objects_in(document: object) -> Iterator[Manifest]:
    """Yield the objects of a manifest: the document itself, or the items of a List."""
    if isinstance(document, Mapping):
        if (items := _items(document)) is None:
            yield document
        for item in items or ():
            yield from objects_in(item)


def _items(document: Manifest) -> list[object] | None:
    """Return the items of a List, or None for any other object.

    Lists of an API server have one kind (`PodList`), and their items may lack `kind` and `apiVersion`.
    """
    items, kind = document.get("items"), str(document.get("kind", ""))
    if not kind.endswith("List") or not isinstance(items, list):
        return None
    own = kind.removesuffix("List")
    of = {"apiVersion": document.get("apiVersion"), "kind": own} if own else {}
    return [{**of, **item} if isinstance(item, Mapping) else item for item in items]


def _changed(document: object, default: str, change: Change) -> Outcome:
    if not isinstance(document, Mapping):
        return Outcome(cast("Manifest", document))
    if (items := _items(document)) is not None:
        outcomes = [_changed(item, default, change) for item in items]
        of_all = tuple(answer for outcome in outcomes for answer in outcome.results)
        kept = [
            _as_it_stood(outcome.manifest, was)
            for outcome, was in zip(outcomes, document["items"], strict=True)
        ]
        return Outcome({**document, "items": kept}, of_all)
    if (place := _place(document, default)) is None:
        return Outcome(document)
    try:
        pod, result = change(checked(_at(document, place.path), ".".join(place.path)), place)
    except DriverError as error:
        return Outcome(
            document, (InjectionResult(place.subject, changed=False, why=str(error), failed=True),)
        )
    return Outcome(document if pod is None else _with(document, place.path, pod), (result,))


def _as_it_stood(item: Manifest, was: object) -> Manifest:
    """Return an injected item of a List without the `kind` and `apiVersion` that were added for reading."""
    if not isinstance(was, Mapping):
        return item
    return {name: element for name, element in item.items() if name in was or name not in _TYPE}


def _place(document: Manifest, default: str) -> Place | None:
    """Return the place of an object's Pod, or None for a kind without Pods."""
    group, kind = str(document.get("apiVersion", "")).rpartition("/")[0], str(document.get("kind", ""))
    path = TEMPLATES.get((group, kind))
    if path is None:
        return None
    metadata = document.get("metadata")
    head = metadata if isinstance(metadata, Mapping) else {}
    namespace = str(head.get("namespace") or default)
    name = head.get("name") or head.get("generateName") or "?"
    return Place(_printable(f"{kind} {namespace}/{name}"), namespace, kind, path)


def _printable(text: str) -> str:
    """Return a text that is safe for a terminal, because the names in a manifest are unchecked."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _at(document: Manifest, path: tuple[str, ...]) -> object:
    result: Any = document
    for index, name in enumerate(path):
        result = result.get(name) if isinstance(result, Mapping) else None
        if result is None:
            raise CannotPatchError(
                f"{'.'.join(path[: index + 1])} is missing, so the object lacks a pod template"
            )
    return result


def _with(document: Manifest, path: tuple[str, ...], pod: Pod) -> Manifest:
    """Return a manifest with `pod` as its Pod (template) at the path, and the fields in their order."""
    if path:
        return {**document, path[0]: _with(document[path[0]], path[1:], pod)}
    fields = cast("Manifest", pod)
    there = [name for name in document if name in fields]
    new = [name for name in fields if name not in document]  # only metadata, which belongs before the spec
    at = there.index("spec") if "spec" in there else len(there)
    return {name: fields[name] for name in (*there[:at], *new, *there[at:])}
