"""References of routes to parents and backends."""

from collections import defaultdict
from typing import Final

from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.gateway.references import CORE, BackendObject, ParentRef
from meshwright.mesh.kinds import GATEWAY, GATEWAY_API, SERVICE, Kind
from meshwright.mesh.names import Namespace
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.gateway.forms import (
    GROUP,
    KIND,
    NAME,
    NAMESPACE,
    SECTION,
    limited,
    optional,
    required,
)

MOST_PARENTS: Final = 32


def parents_of(spec: Fields) -> tuple[ParentRef, ...]:
    """Read `parentRefs`; references to the same object must differ by sectionName or port."""
    sections = limited(spec, "parentRefs", MOST_PARENTS)
    parents = tuple(_parent(section) for section in sections)
    # The CRDs compare the references as written.
    by_object: dict[tuple[Kind, bool, str, Namespace | None], list[ParentRef]] = defaultdict(list)
    for parent in parents:
        by_object[parent.kind, parent.is_core, parent.name, parent.namespace].append(parent)
    for same in by_object.values():
        if not (_distinct_by_section(same) or _distinct_by_port(same)):
            spec.wrong(
                "parentRefs",
                f"must have a different sectionName or port in each reference to {same[0].name:.80}",
                Code.DUPLICATE,
            )
    return parents


def object_kind(fields: Fields, *, group: str = "", kind: str = SERVICE.name) -> Kind:
    """Return the kind in `group` and `kind` of a reference, with these defaults."""
    written = optional(fields, "group", GROUP)
    name = optional(fields, "kind", KIND) or kind
    return Kind(name, group if written is None else "" if written == CORE else written)


def backend_object(fields: Fields, namespace: Namespace) -> BackendObject:
    """Read the object of a backendRef; a Service needs a port."""
    kind = object_kind(fields)
    name, written = required(fields, "name", NAME), optional(fields, "namespace", NAMESPACE)
    port = fields.port("port")
    if kind == SERVICE and not fields.has("port") and fields.raw("group") in (None, ""):
        fields.wrong("port", "must be a port number from 1 to 65535, because the backend is a Service")
    return BackendObject(kind, namespace if written is None else Namespace(written), name, port)


def object_reference(fields: Fields, default: Kind | None = None) -> ObjectReference:
    """Read a reference to an object; group and kind are required if there is no default kind."""
    kind = (
        _kind_of(fields) if default is None else object_kind(fields, group=default.group, kind=default.name)
    )
    name, namespace = required(fields, "name", NAME), optional(fields, "namespace", NAMESPACE)
    fields.close()
    return ObjectReference(kind, name, None if namespace is None else Namespace(namespace))


def local_reference(fields: Fields) -> ObjectReference:
    """Read a reference to an object in the namespace of the referring object."""
    reference = ObjectReference(_kind_of(fields), required(fields, "name", NAME))
    fields.close()
    return reference


def _kind_of(fields: Fields) -> Kind:
    group = required(fields, "group", GROUP)
    return Kind(required(fields, "kind", KIND), group)


def _parent(fields: Fields) -> ParentRef:
    kind = object_kind(fields, group=GATEWAY_API, kind=GATEWAY.name)
    name, namespace = required(fields, "name", NAME), optional(fields, "namespace", NAMESPACE)
    section, port = optional(fields, "sectionName", SECTION), fields.port("port")
    fields.close()
    place = None if namespace is None else Namespace(namespace)
    return ParentRef(kind, name, place, section, port, is_core=fields.raw("group") == CORE)


def _distinct_by_section(same: list[ParentRef]) -> bool:
    """Return whether the references fulfil the rule of the standard CRDs."""
    sections = [parent.section for parent in same]
    return len(same) == 1 or (None not in sections and len(set(sections)) == len(same))


def _distinct_by_port(same: list[ParentRef]) -> bool:
    """Return whether the references fulfil the rule of the experimental CRDs."""
    places = {(parent.section, parent.port) for parent in same}
    forms = {(parent.section is None, parent.port is None) for parent in same}
    return len(places) == len(same) and len(forms) == 1
