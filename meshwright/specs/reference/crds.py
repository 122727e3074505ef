"""CustomResourceDefinitions of all kinds with a reader, except Kubernetes' own.

Every version with a reader is served, the newest is stored, and there is no conversion: the API server shows
an object in any version with the fields it was written with. Each version therefore has the fields of all
versions, so that none are dropped.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.specs.kinds import READ
from meshwright.specs.manifest import split_api_version
from meshwright.specs.reference.meanings.definitions import AGE, INSTALLED, DefinitionFacts
from meshwright.specs.reference.schema import of_shape
from meshwright.specs.reference.shapes import DescribedKind
from meshwright.specs.reference.structural import Structural, merged, structural

_LABEL: Final = {"app.kubernetes.io/name": "meshwright"}
_HEAD: Final[Mapping[str, Structural]] = {
    "apiVersion": {"type": "string", "description": "The API group and version of the object."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"type": "object"},
}
_NOT_ITS_OWN: Final = frozenset({*_HEAD, "status"})
_OF_EVERY: Final = ("metadata.", "status.")
_CONDITION: Final[Structural] = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {"type": "string", "description": "The type of the condition, for example Accepted."},
        "status": {
            "type": "string",
            "enum": ["True", "False", "Unknown"],
            "description": "Whether the condition is met.",
        },
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The generation of the object to which the condition applies.",
        },
        "lastTransitionTime": {
            "type": "string",
            "format": "date-time",
            "description": "The time of the last change of the status.",
        },
        "reason": {"type": "string", "description": "The reason, for programs."},
        "message": {"type": "string", "description": "The reason, for people."},
    },
}
_STATUS: Final[Structural] = {
    "type": "object",
    "description": "The state of the object, written by the control plane.",
    "properties": {
        "conditions": {
            "type": "array",
            "description": "The conditions, by type.",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    },
}
"""Our part of an object's status, in the form of Kubernetes' own kinds."""


def crd(described: DescribedKind) -> Structural:
    """Return the CustomResourceDefinition of a kind; raises KeyError for Kubernetes' own kinds."""
    kind, installed = described.kind, INSTALLED[described.kind]
    singular, plural = kind.name.lower(), plural_of(kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}", "labels": dict(_LABEL)},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": plural,
                "singular": singular,
                "shortNames": list(installed.short_names),
                "categories": list(installed.categories),
            },
            "conversion": {"strategy": "None"},
            "versions": [*_versions(described, installed)],
        },
    }


def crds(described: Sequence[DescribedKind]) -> tuple[Structural, ...]:
    """Return all CustomResourceDefinitions, in the order of kinds."""
    return tuple(crd(described_kind) for described_kind in described if described_kind.kind in INSTALLED)


def plural_of(kind: Kind) -> str:
    """Return the plural of a kind in API paths, for example `retries`; only for kinds with a CRD."""
    name = kind.name.lower()
    if name.endswith("y") and name[-2] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "sh")) else f"{name}s"


def _versions(described: DescribedKind, installed: DefinitionFacts) -> Iterator[Structural]:
    """Yield the `versions` of a CustomResourceDefinition, newest first, as kubectl prefers them."""
    bodies = {
        split_api_version(api_version)[1]: _body(structural(of_shape(shape)))
        for shape in described.shapes
        for api_version in shape.api_versions
    }
    newest, *_ = names = tuple(reversed(READ[described.kind].versions))
    for name in names:
        body = _whole(name, {item: bodies[item] for item in names})
        _ask_more(body, installed)
        status = _status(installed)
        properties = {**copy.deepcopy(_HEAD), **body["properties"], **status}
        schema = {"description": described.purpose, **body, "properties": properties}
        yield {
            "name": name,
            "served": True,
            "storage": name == newest,
            "schema": {"openAPIV3Schema": schema},
            **({"subresources": {"status": {}}} if status else {}),
            "additionalPrinterColumns": [*_columns(installed, bodies[name])],
        }


def _status(installed: DefinitionFacts) -> Structural:
    """Return the schema of a kind's `status`, empty for a kind without one."""
    if installed.status:
        return {"status": copy.deepcopy(_STATUS)}
    if not installed.words:
        return {}
    words = {name: {"type": "string"} for name in installed.words}
    return {"status": {"type": "object", "description": _STATUS["description"], "properties": words}}


def _body(schema: Structural) -> Structural:
    """Return the schema of a document without metadata and the other fields common to all kinds."""
    fields = {name: item for name, item in schema["properties"].items() if name not in _NOT_ITS_OWN}
    required = [name for name in schema["required"] if name in fields]
    return {**schema, "properties": fields, "required": required}


def _whole(version: str, bodies: Mapping[str, Structural]) -> Structural:
    """Return the schema of a version with the fields of all other versions.

    An object has the required fields of one version, so different requirements become alternatives.
    """
    own = bodies[version]
    for other, body in bodies.items():
        if other != version:
            own = merged(own, body, f"In {other}:")
    needs = [body["required"] for body in (bodies[version], *bodies.values())]
    unlike = [need for index, need in enumerate(needs) if need not in needs[:index]]
    whole = {name: copy.deepcopy(item) for name, item in own.items() if name != "required"}
    if len(unlike) == 1 and unlike[0]:
        whole["required"] = unlike[0]
    # If one version requires nothing, an object of that version may lack all fields, so nothing is
    # required.
    elif all(unlike):
        whole["oneOf"] = [{"required": item} for item in unlike]
    return whole


def _ask_more(body: Structural, installed: DefinitionFacts) -> None:
    """Add to a schema: unique keys of lists, and validation rules between fields."""
    for place, key in installed.keys.items():
        if (result := _at(body, place)) is not None:
            result |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    for rule in installed.rules:
        if (result := _at(body, rule.place)) is not None:
            validation = {"rule": rule.holds, "message": rule.message}
            result.setdefault("x-kubernetes-validations", []).append(validation)


def _at(body: Structural, place: str) -> Structural | None:
    """Return the part of a schema at a place such as `spec.rules[]`, or None."""
    result: Structural | None = body
    for name in place.replace("[]", ".[]").split("."):
        if result is None:
            return None
        result = result.get("items") if name == "[]" else result.get("properties", {}).get(name)
    return result


def _columns(installed: DefinitionFacts, own: Structural) -> Iterator[Structural]:
    """Yield the printed columns of a version, each at the first path that exists in this version."""
    for column in (*installed.columns, AGE):
        paths = (path for path in column.paths if path.startswith(_OF_EVERY) or _at(own, _place(path)))
        if (path := next(paths, None)) is not None:
            yield {
                "name": column.name,
                "type": column.type,
                "description": column.text,
                "jsonPath": f".{path}",
                **({"priority": 1} if column.wide else {}),
            }


def _place(path: str) -> str:
    return path.replace("[*]", "[]")
