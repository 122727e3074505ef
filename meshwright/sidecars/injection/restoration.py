"""Restoration of the author's pod from a patched one, by the records in its annotations."""

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import BY_NETWORK, Container, Pod
from meshwright.sidecars.injection import author_container as own
from meshwright.sidecars.injection import copies, names, resources, scraping
from meshwright.sidecars.injection.author_container import FIELDS
from meshwright.sidecars.layout import PROBE_PREFIX, STATUS_PORT

_NAMES: Final = (names.SIDECAR_CONTAINER, names.INIT_CONTAINER)
_LISTS: Final[tuple[Literal["imagePullSecrets", "initContainers", "volumes"], ...]] = (
    *("imagePullSecrets", "initContainers", "volumes"),
)
_COPIED: Final = (
    "the pod was copied without its annotations, which kubectl debug keeps with --keep-annotations "
    "--keep-labels"
)
_WORDS: Final[tuple[Literal["annotations", "labels"], ...]] = ("annotations", "labels")


@dataclass(frozen=True, slots=True)
class AddedParts:
    """Names of the parts that the patch added beside its two containers.

    `empty` are fields of the author's pod that were present but empty; they stay when the rest is removed.
    """

    volumes: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def written(self) -> str:
        """Return the names as text for an annotation, for example `{"volumes": ["meshwright-run"]}`."""
        result = {
            "annotations": self.annotations,
            "empty": self.empty,
            "imagePullSecrets": self.pull_secrets,
            "labels": self.labels,
            "volumes": self.volumes,
        }
        return json.dumps({name: list(item) for name, item in result.items() if item}, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> "AddedParts":
        """Parse the annotation with the names of the added parts; raise ValueError for any other text."""
        document = json.loads(text)
        if not isinstance(document, dict) or any(not isinstance(item, list) for item in document.values()):
            raise ValueError("no lists")
        keys = ("volumes", "imagePullSecrets", "annotations", "labels", "empty")
        return cls(*(tuple(map(str, document.get(key, ()))) for key in keys))


def empty(pod: Pod) -> tuple[str, ...]:
    """Return the fields that the patch adds to and that are present but empty in a pod."""
    metadata, spec = pod.get("metadata"), pod.get("spec", {})
    result: dict[str, object] = {name: spec[name] for name in _LISTS if name in spec}
    if metadata is not None:
        result |= {name: metadata[name] for name in _WORDS if name in metadata} | {"metadata": metadata}
    return tuple(sorted(name for name, item in result.items() if not item))


def is_patched(pod: Pod) -> bool:
    """Return whether a pod has an injected sidecar, even without the records of the patch."""
    return _is_noted(pod) or copies.is_copy(pod)


def _is_noted(pod: Pod) -> bool:
    return names.ADDED_ANNOTATION in (pod.get("metadata", {}).get("annotations") or {})


def restored(pod: Pod) -> Pod:
    """Return the author's pod. A pod that was never patched is returned as a copy.

    Later changes by others stay; a probe is restored only if it still calls the agent. A copy without records
    is recognised by its shape, and keeps its pull secrets. Raises CannotPatchError if the records were
    changed, or have no original for a probe that calls the agent.
    """
    plain = copy.deepcopy(pod)
    if not _is_noted(pod):
        if copies.is_copy(plain):
            plain.setdefault("metadata", {})
            resources.narrow(
                plain, [container for container in _containers(plain) if container.get("name") in _NAMES]
            )
            _take_out(plain, AddedParts(volumes=copies.volumes(plain)))
            _require_no_others(plain, _COPIED)
        return plain
    annotations = plain["metadata"]["annotations"]
    name = names.ADDED_ANNOTATION
    try:
        # `name` is always the annotation in work, so that the error can name the one that was changed.
        added = AddedParts.read(annotations[name])
        name = names.ORIGINALS_ANNOTATION
        originals = json.loads(annotations.get(name, "{}"))
        name = names.OWN_ANNOTATION
        theirs = own.read(annotations.get(name, "[]"))
        name = names.SCRAPED_ANNOTATION
        scraped = scraping.read(annotations.get(name, "{}"))
        name = names.RESOURCES_ANNOTATION
        asked = resources.read(annotations.get(name, '{"is": {}, "was": {}}'))
        _take_out(plain, added)
        resources.put_back(plain, asked)
        scraping.put_back(plain, scraped)
        name = names.ORIGINALS_ANNOTATION
        for container in _containers(plain):
            _put_back(cast("dict[str, Any]", container), originals.get(container.get("name"), {}))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CannotPatchError(
            f"annotation {name} was changed, so the sidecar cannot be removed: "
            "create the pod again from its original manifest"
        ) from error
    _require_no_others(plain, "the container had another name")
    # After the removal of the injected containers, because the positions count the author's containers only.
    own.put_back(plain, theirs)
    return plain


def _put_back(container: dict[str, Any], originals: Mapping[str, Any]) -> None:
    """Restore a container's original probes and hooks in place of calls to the agent.

    Calls changed since the patch stay.
    """
    for field, original in originals.items():
        there: Any = container.get(field)
        if field == "lifecycle":
            for kind in [item for item in there or () if _asks_agent(there[item])]:
                there[kind] = original[kind]
        elif _asks_agent(there):
            container[field] = _called(there, original)


def _called(there: Mapping[str, Any], original: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a probe with the call of the author's probe and the times of the pod's present one."""
    times = {name: value for name, value in there.items() if name != "httpGet"}
    call = {name: value for name, value in original.items() if name in BY_NETWORK}
    result = call | times
    # In the author's order. The notation of numbers comes from the pod, because the records do not have it.
    return {name: result[name] for name in original} if result == original else result


def _asks_agent(value: object) -> bool:
    """Return whether a probe or hook calls the agent."""
    call = value.get("httpGet") if isinstance(value, Mapping) else None
    if not isinstance(call, Mapping) or call.get("port") != STATUS_PORT:
        return False
    return str(call.get("path")).startswith(PROBE_PREFIX)


def _require_no_others(pod: Pod, why: str) -> None:
    """Raise CannotPatchError for a call to the agent without a record, because nothing would answer it."""
    for container in _containers(pod):
        fields = cast("Mapping[str, Any]", container)
        asked = {name: value for name, value in fields.items() if name.endswith("Probe")}
        for name, value in {**asked, **(fields.get("lifecycle") or {})}.items():
            if _asks_agent(value):
                raise CannotPatchError(
                    f"{name} of container {container.get('name')} calls the sidecar, but annotation "
                    f"{names.ORIGINALS_ANNOTATION} does not contain the original: {why}"
                )


def _take_out(pod: Pod, added: AddedParts) -> None:
    spec, metadata = pod["spec"], pod["metadata"]
    volumes, secrets = (
        frozenset(added.volumes),
        frozenset(added.pull_secrets),
    )  # sets, because an annotation may have many names
    for field in FIELDS:
        if field in spec:
            spec[field] = [item for item in spec[field] if item.get("name") not in _NAMES]
    if "volumes" in spec:
        spec["volumes"] = [volume for volume in spec["volumes"] if volume.get("name") not in volumes]
    if "imagePullSecrets" in spec:
        theirs = [secret for secret in spec["imagePullSecrets"] if secret.get("name") not in secrets]
        spec["imagePullSecrets"] = theirs
    for name in _LISTS:
        if not spec.get(name) and name not in added.empty:
            spec.pop(name, None)
    for words, keys in zip(_WORDS, (added.annotations, added.labels), strict=True):
        for key in (*keys, names.ADDED_ANNOTATION):
            metadata.get(words, {}).pop(key, None)
        if metadata.get(words) == {} and words not in added.empty:
            del metadata[words]
    if not metadata and "metadata" not in added.empty:
        del pod["metadata"]


def _containers(pod: Pod) -> Iterable[Container]:
    return (item for field in FIELDS for item in pod["spec"].get(field) or ())
