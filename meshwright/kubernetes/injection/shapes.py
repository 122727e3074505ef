"""Check of a Pod's shape, because Pods in files are unchecked.

Only fields that injection uses are checked; other fields may have any value. A null counts as an empty field,
as in an API server.
"""

from collections.abc import Mapping
from typing import Final, cast

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod

Shape = type | tuple[type, ...] | Mapping[str, "Shape"] | list["Shape"]
"""The type of a scalar, the fields of a mapping (`*`: all fields), or a list with the shape of its items."""

_CALL: Final[Shape] = {"host": str, "path": str, "port": (int, str), "scheme": str, "service": str}
_PROBE: Final[Shape] = {"grpc": _CALL, "httpGet": _CALL, "tcpSocket": _CALL, "timeoutSeconds": int}
_HOOK: Final[Shape] = {"httpGet": _CALL}
_NAMED: Final[Shape] = {"name": str}
_CONTAINER: Final[Shape] = {
    "env": [_NAMED],
    "image": str,
    "lifecycle": {"postStart": _HOOK, "preStop": _HOOK},
    "livenessProbe": _PROBE,
    "name": str,
    "ports": [{"containerPort": int, "name": str}],
    "readinessProbe": _PROBE,
    "restartPolicy": str,
    "securityContext": {"runAsUser": int},
    "startupProbe": _PROBE,
    "volumeMounts": [{"mountPath": str}],
}
POD: Final[Shape] = {
    "metadata": {"annotations": {"*": str}, "labels": {"*": str}},
    "spec": {
        "containers": [_CONTAINER],
        "dnsPolicy": str,
        "hostNetwork": bool,
        "imagePullSecrets": [_NAMED],
        "initContainers": [_CONTAINER],
        "nodeSelector": {"*": str},
        "os": {"name": str},
        "resources": {"limits": {"*": (float, int, str)}, "requests": {"*": (float, int, str)}},
        "restartPolicy": str,
        "securityContext": {"fsGroup": int, "runAsUser": int},
        "serviceAccount": str,
        "serviceAccountName": str,
        "volumes": [_NAMED],
    },
}
_MUST_BE_NAMED: Final = ("containers", "initContainers", "volumes", "imagePullSecrets")
_WORDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "text",
}


def checked(document: object, path: str = "") -> Pod:
    """Return a Pod without the nulls in checked fields. Raises CannotPatchError, which names the field.

    `path` is the Pod's place in the manifest, for example `spec.template`.
    """
    return cast("Pod", _checked(document, POD, path))


def _checked(value: object, shape: Shape, path: str) -> object:
    match shape:
        case Mapping():
            if not isinstance(value, Mapping):
                raise CannotPatchError(f"{path or 'the pod'} must be a mapping")
            return _mapping(value, shape, path)
        case list():
            if not isinstance(value, list):
                raise CannotPatchError(f"{path} must be a list")
            return [_item(item, shape[0], f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            kinds = shape if isinstance(shape, tuple) else (shape,)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise CannotPatchError(f"{path} must be {' or '.join(_WORDS[kind] for kind in kinds)}")
            return value


def _mapping(value: Mapping[object, object], shape: Mapping[str, Shape], path: str) -> dict[object, object]:
    result: dict[object, object] = {}
    for name, inner in value.items():
        known = shape.get("*") if "*" in shape else shape.get(str(name))
        if known is None:
            result[name] = inner
        elif inner is not None:
            result[name] = _checked(inner, known, f"{path}.{name}" if path else str(name))
    return result


def _item(value: object, shape: Shape, path: str) -> object:
    result = _checked(value, shape, path)
    field = path.rpartition(".")[2].partition("[")[0]
    if field in _MUST_BE_NAMED and not cast("dict[str, object]", result).get("name"):
        raise CannotPatchError(f"{path}.name is missing")
    return result
