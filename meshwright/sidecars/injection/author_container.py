"""The author's own containers under the injected names: their fields override the injected ones.

The API requires an image for every container, so the image `auto` means the injected one.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Container, Pod
from meshwright.sidecars.injection import names

AUTO: Final = "auto"
_PULL_POLICY_OF_AUTO: Final = "Always"
"""Default of API servers for an image without a tag."""
_CONTAINER_DEFAULTS: Final[Mapping[str, object]] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBES: Final = frozenset({"livenessProbe", "readinessProbe", "startupProbe"})
_PROBE_DEFAULTS: Final[Mapping[str, object]] = {
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}
_NO_DEFAULT: Final = object()
FIELDS: Final[tuple[Literal["containers", "initContainers"], ...]] = ("containers", "initContainers")
_NAMES: Final = (names.SIDECAR_CONTAINER, names.INIT_CONTAINER)


@dataclass(frozen=True, slots=True)
class OwnContainer:
    """A container of the author: its list in the pod, its index there, and its content."""

    field: Literal["containers", "initContainers"]
    index: int
    container: Container

    @property
    def name(self) -> str:
        """Return its name, one of the two injected ones."""
        return self.container.get("name", "")

    @property
    def patch(self) -> Mapping[str, object]:
        """Return the author's fields as a patch of the injected container.

        A null is left out, because API servers do not keep one. So is a default that the API server fills in
        before a webhook sees the Pod, for example `imagePullPolicy: Always` for the image `auto`. Values pass
        through JSON, as they do in the annotations, so that the result is the same when the pod is patched
        again.
        """
        said = cast("Mapping[str, object]", _without_nulls(json.loads(json.dumps(self.container))))
        injected = said.get("image") == AUTO
        of_image = {"image": AUTO, "imagePullPolicy": _PULL_POLICY_OF_AUTO} if injected else {}
        left_out: dict[str, object] = {**_CONTAINER_DEFAULTS, **of_image}
        return {
            key: _without(value, _PROBE_DEFAULTS) if key in _PROBES else value
            for key, value in said.items()
            if value != left_out.get(key, _NO_DEFAULT)
        }


def taken(pod: Pod) -> tuple[OwnContainer, ...]:
    """Remove the author's own containers from a pod (in place) and return them.

    Raises CannotPatchError if one occurs twice.
    """
    found: list[OwnContainer] = []
    spec = pod.get("spec")
    if spec is None:
        return ()
    for field in FIELDS:
        there = spec.get(field) or []
        found += [OwnContainer(field, at, each) for at, each in enumerate(there) if _is_own(each)]
        if field in spec:
            spec[field] = [each for each in there if not _is_own(each)]
    for name in _NAMES:
        if len([each for each in found if each.name == name]) > 1:
            raise CannotPatchError(f"two containers are named {name}: only one sidecar can be customised")
    return tuple(found)


def put_back(pod: Pod, own: Iterable[OwnContainer]) -> None:
    """Insert the containers at their earlier positions, in the order in which they were taken (in place)."""
    for each in own:
        there = pod["spec"].setdefault(each.field, [])
        there.insert(each.index, each.container)


def written(own: Iterable[OwnContainer]) -> str:
    """Return the containers as JSON, with their fields in the author's order."""
    found = [{"field": each.field, "index": each.index, "container": each.container} for each in own]
    return json.dumps(found)


def read(text: str) -> tuple[OwnContainer, ...]:
    """Parse the result of `written`; raise ValueError, TypeError or KeyError for any other text."""
    found = [OwnContainer(each["field"], int(each["index"]), each["container"]) for each in json.loads(text)]
    if any(each.field not in FIELDS or not isinstance(each.container, dict) for each in found):
        raise ValueError("no containers")
    return tuple(found)


def _without_nulls(value: object) -> object:
    """Return a value without nulls, as an API server stores it."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value


def _without(value: object, defaults: Mapping[str, object]) -> object:
    """Return a mapping without fields that have their default; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {key: each for key, each in value.items() if each != defaults.get(key, _NO_DEFAULT)}


def _is_own(container: Container) -> bool:
    return container.get("name") in _NAMES
