"""Manifests in, manifests out: the pods in them with their sidecars, all else as it was."""

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
"""Where the pod stands in what makes pods, by API group and kind."""
_TYPE: Final = ("apiVersion", "kind")
_END: Final = frozenset({"CronJob", "Job"})

Change = Callable[[Pod, "Place"], tuple[Pod | None, "InjectionResult"]]


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """What became of one object: whether it is another one now, why, and what to know of it."""

    what: str
    changed: bool
    why: str
    failed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A manifest as it is afterwards, and what became of each object in it that has pods."""

    manifest: Manifest
    said: tuple[InjectionResult, ...] = ()

    @property
    def changed(self) -> bool:
        """Say whether anything in it is another thing now."""
        return any(each.changed for each in self.said)


def inject(
    known: InjectionInputs, namespaces: Mapping[str, NamespaceObject], manifest: object, default: str
) -> Outcome:
    """Return a manifest with sidecars; `default` is the namespace of what names none. Raises nothing.

    `namespaces` are those of which something is known, by name.
    """

    def change(pod: Pod, place: Place) -> tuple[Pod | None, InjectionResult]:
        of = namespaces.get(place.namespace, NamespaceObject(Namespace(place.namespace)))
        found: PodInjection = injected(known, of, pod, ends=place.ends)
        said = InjectionResult(
            place.what, found.pod is not None, found.decision.words, warnings=found.warnings
        )
        return found.pod, said

    return _changed(manifest, default, change)


def uninject(manifest: object, default: str) -> Outcome:
    """Return a manifest without sidecars, as its author wrote it; raises nothing."""

    def change(pod: Pod, place: Place) -> tuple[Pod | None, InjectionResult]:
        if not is_patched(pod):
            return None, InjectionResult(place.what, changed=False, why="it has no sidecar that was injected")
        return checked(restored(pod)), InjectionResult(
            place.what, changed=True, why="the sidecar is taken out"
        )

    return _changed(manifest, default, change)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod stands: in words, its namespace, the kind of object that has it, and its field there."""

    what: str
    namespace: str
    kind: str
    path: tuple[str, ...]

    @property
    def ends(self) -> bool:
        """Say whether its pods are to end by themselves."""
        return self.kind in _END


def pods_in(manifest: object, default: str) -> Iterator[tuple[Place, object]]:
    """Yield the pods of a manifest, and of what makes pods, also in Lists; None for one that is missing.

    Nobody has looked at what they are; `default` is the namespace of what names none.
    """
    for document in objects_in(manifest):
        if (place := _place(document, default)) is not None:
            try:
                yield place, _at(document, place.path)
            except CannotPatchError:
                yield place, None


def namespaces_in(manifests: Iterator[object]) -> Mapping[str, NamespaceObject]:
    """Return the namespaces that manifests define, with their labels and annotations."""
    found = {}
    for each in manifests:
        for document in objects_in(each):
            if document.get("apiVersion") == "v1" and document.get("kind") == "Namespace":
                defined = namespace_of(checked(document))
                found[str(defined.name)] = defined
    return found


def objects_in(document: object) -> Iterator[Manifest]:
    """Yield a manifest's objects: itself, or what a List holds."""
    if isinstance(document, Mapping):
        if (items := _items(document)) is None:
            yield document
        for each in items or ():
            yield from objects_in(each)


def _items(document: Manifest) -> list[object] | None:
    """Return what a List holds; None for what is none.

    An API server's lists are of one kind each (`PodList`), whose items need not say it themselves.
    """
    items, kind = document.get("items"), str(document.get("kind", ""))
    if not kind.endswith("List") or not isinstance(items, list):
        return None
    own = kind.removesuffix("List")
    of = {"apiVersion": document.get("apiVersion"), "kind": own} if own else {}
    return [{**of, **each} if isinstance(each, Mapping) else each for each in items]


def _changed(document: object, default: str, change: Change) -> Outcome:
    if not isinstance(document, Mapping):
        return Outcome(cast("Manifest", document))
    if (items := _items(document)) is not None:
        found = [_changed(each, default, change) for each in items]
        of_all = tuple(said for each in found for said in each.said)
        kept = [_as_it_stood(each.manifest, was) for each, was in zip(found, document["items"], strict=True)]
        return Outcome({**document, "items": kept}, of_all)
    if (place := _place(document, default)) is None:
        return Outcome(document)
    try:
        pod, said = change(checked(_at(document, place.path), ".".join(place.path)), place)
    except DriverError as error:
        return Outcome(document, (InjectionResult(place.what, changed=False, why=str(error), failed=True),))
    return Outcome(document if pod is None else _with(document, place.path, pod), (said,))


def _as_it_stood(item: Manifest, was: object) -> Manifest:
    """Return an item of a list without what it need not say there, and did not."""
    if not isinstance(was, Mapping):
        return item
    return {name: each for name, each in item.items() if name in was or name not in _TYPE}


def _place(document: Manifest, default: str) -> Place | None:
    """Return where the pod of an object stands; None for one of a kind that has none."""
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
    """Return a text as a terminal may be given it: nobody has checked what an object is called."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _at(document: Manifest, path: tuple[str, ...]) -> object:
    found: Any = document
    for index, name in enumerate(path):
        found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            raise CannotPatchError(
                f"{'.'.join(path[: index + 1])} is missing, so the object has no pod template"
            )
    return found


def _with(document: Manifest, path: tuple[str, ...], pod: Pod) -> Manifest:
    """Return a manifest with another pod in the place of its own, the fields in their order."""
    if path:
        return {**document, path[0]: _with(document[path[0]], path[1:], pod)}
    fields = cast("Manifest", pod)
    there = [name for name in document if name in fields]
    new = [name for name in fields if name not in document]  # metadata at most, which stands before the spec
    at = there.index("spec") if "spec" in there else len(there)
    return {name: fields[name] for name in (*there[:at], *new, *there[at:])}
