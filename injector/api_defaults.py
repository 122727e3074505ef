"""What an API server makes of a pod's fields that says nothing (Kubernetes API, core/v1, its defaults)."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
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
_AMOUNT: Final = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i))?")
_SUFFIXES: Final[Mapping[str, Decimal]] = {
    **{each: Decimal(1000) ** (at - 3) for at, each in enumerate(("n", "u", "m", "", "k", *"MGTPE"))},
    **{f"{each}i": Decimal(1024) ** (at + 1) for at, each in enumerate("KMGTPE")},
}


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


def amount(value: object) -> object:
    """Return a quantity as a number, that 1000m is 1; what is none comes back as it is."""
    if (found := _AMOUNT.fullmatch(str(value))) is None or found[1].count(".") > 1:
        return value
    number = Decimal(found[1])
    return number.scaleb(int(found[2])) if found[2] else number * _SUFFIXES[found[3] or ""]
