"""What an API server makes of a pod's fields that says nothing (Kubernetes API, core/v1, its defaults)."""

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
"""By field; none of these names is one of two fields of a container or volume with other defaults."""
_LEFT_OUT: Final = frozenset({"optional", "readOnly", "stdin", "stdinOnce", "tty"})
"""Fields whose `false` is not kept, or the same as nothing."""
_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""By what the items of a list are known, as a strategic merge patch knows them."""


def is_nothing(value: object) -> bool:
    """Say whether a field is as good as not there."""
    return value is None or value == "" or (isinstance(value, list | Mapping) and not value)


def is_filled_in(name: str, value: object) -> bool:
    """Say whether a value stands in a field where nobody has said one."""
    return is_nothing(value) or value in _FILLED_IN.get(name, ()) or (value is False and name in _LEFT_OUT)


def key_of(name: str, *lists: Sequence[Any]) -> str | None:
    """Return by which field the items of lists are known, None where by their places alone."""
    key = _KEYS.get(name)
    items = [each for one in lists for each in one]
    known = key is not None and all(isinstance(each, Mapping) and key in each for each in items)
    return key if known else None
