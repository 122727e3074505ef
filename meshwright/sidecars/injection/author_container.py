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
        """Return the container's name, one of the two injected ones."""
        return self.container.get("name", "")

    @property
    def patch(self) -> Mapping[str, object]:
        """Return the author's fields as a patch of the injected container.

        A null is left out, because API servers do not keep one. So is a default that the API server fills in
        before a webhook sees the Pod, for example `imagePullPolicy: Always` for the image `auto`. Values pass
        through JSON, as they do in the annotations, so that the result is the same when the pod is patched
        again.
        """
        container = cast("Mapping[str, object]", _without_nulls(json.loads(json.dumps(self.container))))
        injected = container.get("image") == AUTO
        of_image = {"image": AUTO, "imagePullPolicy": _PULL_POLICY_OF_AUTO} if injected else {}
        left_out: dict[str, object] = {**_CONTAINER_DEFAULTS, **of_image}
        return {
            key: _without(value, _PROBE_DEFAULTS) if key in _PROBES else value
            for key, value in container.items()
            if value != left_out.get(key, _NO_DEFAULT)
        }


def taken(pod: Pod) -> tuple[OwnContainer, ...]:
    """Remove the author's own containers from a pod (in place) and return them.

    Raises CannotPatchError if one occurs twice.
    """
    own_containers: list[OwnContainer] = []
    spec = pod.get("spec")
    if spec is None:
        return ()
    for field in FIELDS:
        there = spec.get(field) or []
        own_containers += [OwnContainer(field, at, item) for at, item in enumerate(there) if _is_own(item)]
        if field in spec:
            spec[field] = [item for item in there if not _is_own(item)]
    for name in _NAMES:
        if len([own_container for own_container in own_containers if own_container.name == name]) > 1:
            raise CannotPatchError(f"two containers are named {name}: only one sidecar can be customised")
    return tuple(own_containers)


def put_back(pod: Pod, own: Iterable[OwnContainer]) -> None:
    """Insert the containers at their earlier positions, in the order in which they were taken (in place)."""
    for own_container in own:
        there = pod["spec"].setdefault(own_container.field, [])
        there.insert(own_container.index, own_container.container)


def written(own: Iterable[OwnContainer]) -> str:
    """Return the author's containers as JSON, with their fields in the author's order."""
    result = [
        {"field": own_container.field, "index": own_container.index, "container": own_container.container}
        for own_container in own
    ]
    return json.dumps(result)


def read(text: str) -> tuple[OwnContainer, ...]:
    """Parse the author's containers from the result of `written`.

    Raises ValueError, TypeError or KeyError for any other text.
    """
    own_containers = [
        OwnContainer(load["field"], int(load["index"]), load["container"]) for load in json.loads(text)
    ]
    if any(
        own_container.field not in FIELDS or not isinstance(own_container.container, dict)
        for own_container in own_containers
    ):
        raise ValueError("no containers")
    return tuple(own_containers)


def _without_nulls(value: object) -> object:
    """Return a value without nulls, as an API server stores it."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value


def _without(value: object, defaults: Mapping[str, object]) -> object:
    """Return a mapping without fields that have their default; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if item != defaults.get(key, _NO_DEFAULT)}


def _is_own(container: Container) -> bool:
    return container.get("name") in _NAMES
