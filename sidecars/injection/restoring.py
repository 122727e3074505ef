"""A patched pod as its author wrote it: by what the patch has noted in the pod of what it put there."""

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sidecars.contract.errors import CannotPatchError
from sidecars.contract.kubernetes import Container, Pod
from sidecars.injection import names, own
from sidecars.injection.own import FIELDS

_NAMES: Final = (names.SIDECAR_CONTAINER, names.INIT_CONTAINER)
_WORDS: Final[tuple[Literal["annotations", "labels"], ...]] = ("annotations", "labels")


@dataclass(frozen=True, slots=True)
class Added:
    """Names of what the patch put into a pod beside its two containers; and lists that were not there."""

    volumes: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def written(self) -> str:
        """Return it as text, for an annotation."""
        found = {
            "annotations": self.annotations,
            "imagePullSecrets": self.pull_secrets,
            "labels": self.labels,
            "volumes": self.volumes,
        }
        return json.dumps({name: list(each) for name, each in found.items() if each}, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> "Added":
        """Return it from text; raise ValueError for text that is none."""
        said = json.loads(text)
        if not isinstance(said, dict) or any(not isinstance(each, list) for each in said.values()):
            raise ValueError("no lists")
        keys = ("volumes", "imagePullSecrets", "annotations", "labels")
        return cls(*(tuple(map(str, said.get(key, ()))) for key in keys))


def is_patched(pod: Pod) -> bool:
    """Say whether a pod has a sidecar that was put there."""
    return names.ADDED_ANNOTATION in (pod.get("metadata", {}).get("annotations") or {})


def restored(pod: Pod) -> Pod:
    """Return a patched pod as it was before; one that was never patched comes back as it is.

    What others have added since stays. Raises CannotPatchError where the notes were changed.
    """
    plain = copy.deepcopy(pod)
    if not is_patched(pod):
        return plain
    annotations = plain["metadata"]["annotations"]
    name = names.ADDED_ANNOTATION
    try:
        added = Added.read(annotations[name])
        name = names.ORIGINALS_ANNOTATION
        originals = json.loads(annotations.get(name, "{}"))
        name = names.OWN_ANNOTATION
        theirs = own.read(annotations.get(name, "[]"))
        _take_out(plain, added)
        name = names.ORIGINALS_ANNOTATION
        for each in _containers(plain):
            each.update(originals.get(each.get("name"), {}))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CannotPatchError(
            f"annotation {name} is not as it was written, so that the sidecar cannot be taken out: "
            "make the pod anew from its author's manifest"
        ) from error
    own.put_back(plain, theirs)
    return plain


def _take_out(pod: Pod, added: Added) -> None:
    spec, metadata = pod["spec"], pod["metadata"]
    for field in FIELDS:
        if field in spec:
            spec[field] = [each for each in spec[field] if each.get("name") not in _NAMES]
            if not spec[field] and field == "initContainers":
                del spec[field]
    if "volumes" in spec:
        spec["volumes"] = [each for each in spec["volumes"] if each.get("name") not in added.volumes]
        if not spec["volumes"]:
            del spec["volumes"]
    if "imagePullSecrets" in spec:
        kept = [each for each in spec["imagePullSecrets"] if each.get("name") not in added.pull_secrets]
        spec["imagePullSecrets"] = kept
        if not kept:
            del spec["imagePullSecrets"]
    for words, keys in zip(_WORDS, (added.annotations, added.labels), strict=True):
        for key in (*keys, names.ADDED_ANNOTATION):
            metadata.get(words, {}).pop(key, None)
        if metadata.get(words) == {}:
            del metadata[words]
    if not metadata:
        del pod["metadata"]


def _containers(pod: Pod) -> Iterable[Container]:
    return (each for field in FIELDS for each in pod["spec"].get(field) or ())
