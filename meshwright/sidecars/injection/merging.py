"""Strategic merge patches of pods, by the rules of the Kubernetes API ("Update API Objects in Place").

Mappings are merged field by field, and null removes a field. Lists with a merge key are merged by that key,
with new items at the end; other lists are replaced. `$patch: delete` removes an item of a list, and `$patch:
replace` replaces a mapping. Of fields that exclude each other, for example the kinds of a probe or the
sources of a volume, the patch's field replaces the other one.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Final

DIRECTIVE: Final = "$patch"
MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Merge key of each list of a pod that has one (core/v1, `patchMergeKey`)."""

_PROBE: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})
_HOOK: Final = frozenset({"exec", "httpGet", "sleep", "tcpSocket"})
_ONE_OF: Final[Mapping[str, frozenset[str]]] = {
    "env": frozenset({"value", "valueFrom"}),
    "livenessProbe": _PROBE,
    "postStart": _HOOK,
    "preStop": _HOOK,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
}
"""Fields that exclude each other, by the field (or list) that contains them."""


def merged(base: Mapping[str, object], patch: Mapping[str, object], field: str = "") -> dict[str, object]:
    """Return a mapping with a patch applied; `field` is the field (or list) whose value it is."""
    if patch.get(DIRECTIVE) == "replace":
        base = {}
    alone = _alone(field, base, patch)
    result = {name: copy.deepcopy(value) for name, value in base.items() if name not in alone}
    for name, value in patch.items():
        if name == DIRECTIVE:
            continue
        there = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(there if isinstance(there, Mapping) else {}, value, name)
        elif isinstance(value, list) and name in MERGE_KEYS:
            result[name] = merged_list(there if isinstance(there, list) else [], value, name)
        else:
            result[name] = copy.deepcopy(value)
    return result


def merged_list(
    base: Sequence[Mapping[str, object]], patch: Sequence[Mapping[str, object]], field: str
) -> list[dict[str, object]]:
    """Return a list with a patch applied; `field` is one of MERGE_KEYS.

    For example, `{"name": "x", "$patch": "delete"}` in a patch of `env` removes the variable `x`.
    """
    key = MERGE_KEYS[field]
    result = {item.get(key): dict(item) for item in base}
    for item in patch:
        name = item.get(key)
        if item.get(DIRECTIVE) == "delete":
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name, {}), item, field)
    return list(result.values())


def _alone(field: str, base: Mapping[str, object], patch: Mapping[str, object]) -> frozenset[str]:
    """Return the fields of the base that an exclusive field of the patch replaces."""
    # Every field of a volume except its name is a source, so the many kinds of sources need no list here.
    kinds = frozenset(base) - {"name"} if field == "volumes" else _ONE_OF.get(field, frozenset())
    names = {name for name in patch if patch[name] is not None and name not in ("name", DIRECTIVE)}
    if not (names if field == "volumes" else names & kinds):
        return frozenset()
    return kinds - names
