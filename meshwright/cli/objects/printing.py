"""Objects in etcd as a table, YAML, JSON or names; the content of Secrets is withheld."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from meshwright.cli.bugs.redaction import HIDDEN, of_json
from meshwright.cli.objects.kinds import resource_of
from meshwright.etcd.values import KeyValue
from meshwright.mesh.kinds import SECRET, Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.etcd.book import EtcdObjects
from meshwright.providers.etcd.names import ObjectNames
from meshwright.providers.text.documents import documents


class Output(StrEnum):
    """Form of the output."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


def selected(
    names: ObjectNames, items: Iterable[KeyValue], kind: Kind | None, namespace: str | None, name: str | None
) -> dict[ObjectKey, KeyValue]:
    """Return the objects of a kind, namespace and name, sorted; None stands for all.

    Objects without a namespace are in every namespace.
    """
    found = ((names.object_of(item.key), item) for item in items)
    return dict(
        sorted(
            (key, item)
            for key, item in found
            if key is not None
            and (kind is None or key.kind == kind)
            and (namespace is None or key.namespace in ("", namespace))
            and (name is None or key.name == name)
        )
    )


def as_yaml(objects: Mapping[ObjectKey, KeyValue]) -> str:
    """Return the manifests as they were applied; a Secret is JSON, which YAML contains."""
    return "---\n".join(_shown(key, item).rstrip() + "\n" for key, item in objects.items())


def as_json(objects: Mapping[ObjectKey, KeyValue], *, alone: bool) -> str:
    """Return the manifests as JSON: one alone, or a List. Values that are not manifests are text."""
    values = [_secret(item) if key.kind == SECRET else _value(item) for key, item in objects.items()]
    result = values[0] if alone else {"apiVersion": "v1", "kind": "List", "items": values}
    return json.dumps(result, ensure_ascii=False, indent=2) + "\n"


def as_names(objects: Mapping[ObjectKey, KeyValue]) -> str:
    """Return a line for each object, for example `service/web`."""
    return "".join(f"{resource_of(key)}\n" for key in objects)


def rows(names: ObjectNames, objects: Mapping[ObjectKey, KeyValue]) -> Iterator[tuple[str, str, str, str]]:
    """Yield namespace, resource, revision of the last change, and state of each object."""
    # Read as a server reads the values at its start, without a last good form.
    state = EtcdObjects().taken(names, objects.values(), ())
    for key, item in objects.items():
        errors = state.holders[names.shown(item.key)].problems if key not in state.objects() else ()
        found = f"invalid: {errors[0].clause}" if errors else "valid"
        yield key.namespace or "-", resource_of(key), str(item.modified), found


def _shown(key: ObjectKey, item: KeyValue) -> str:
    if key.kind != SECRET:
        return _text(item)
    return json.dumps(_secret(item), ensure_ascii=False, indent=2)


def _secret(item: KeyValue) -> object:
    """Return a Secret without content; a value that is not a manifest is withheld as a whole."""
    value = _value(item)
    return of_json({**value, "kind": SECRET.name}) if isinstance(value, dict) else HIDDEN


def _text(item: KeyValue) -> str:
    return item.value.decode("utf-8-sig", "backslashreplace")


def _value(item: KeyValue) -> object:
    found = documents(_text(item))
    return found[0].value if len(found) == 1 and not found[0].faults else _text(item)
