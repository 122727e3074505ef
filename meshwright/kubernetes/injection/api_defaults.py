"""Values that an API server fills into empty fields of a Pod (Kubernetes API, core/v1, defaults)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_FILLED_IN: Final[Mapping[str, tuple[object, ...]]] = {
    "apiVersion": ("v1",),
    "defaultMode": (0o644,),
    "expirationSeconds": (3600,),
    "failureThreshold": (3,),
    "imagePullPolicy": ("Always", "IfNotPresent"),
    "path": ("/",),
    "periodSeconds": (10,),
    "procMount": ("Default",),
    "protocol": ("TCP",),
    "scheme": ("HTTP",),
    "successThreshold": (1,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "timeoutSeconds": (1,),
}
"""Default values by field name. Fields of containers and volumes with the same name have the same default."""
_LEFT_OUT: Final = frozenset({"optional", "readOnly", "stdin", "stdinOnce", "tty"})
"""Fields in which `false` means the same as an empty field, or is dropped by the API server."""
_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Field that identifies the items of a list, as in a strategic merge patch.

For example, two lists of volumes are compared by the names of the volumes.
"""


def is_like_missing(value: object) -> bool:
    """Return whether a value in a Pod means the same as a missing field."""
    return value is None or value == "" or (isinstance(value, list | Mapping) and not value)


def is_filled_in(name: str, value: object) -> bool:
    """Return whether a field's value is empty, or the default that an API server adds for this field."""
    return (
        is_like_missing(value) or value in _FILLED_IN.get(name, ()) or (value is False and name in _LEFT_OUT)
    )


def key_of(name: str, *lists: Sequence[Any]) -> str | None:
    """Return the field that identifies the items of lists, or None if only the position does."""
    key = _KEYS.get(name)
    items = [item for one in lists for item in one]
    known = key is not None and all(isinstance(item, Mapping) and key in item for item in items)
    return key if known else None
