"""BackendTLSPolicy v1 and v1alpha3, which have one form."""

from dataclasses import dataclass
from typing import Final

from meshwright.mesh.gateway.backend_tls import AltName, AltNameType, BackendTLSPolicy, PolicyTarget
from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.kinds import Kind
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import (
    ANNOTATION_VALUE,
    GROUP,
    HOSTNAME,
    KIND,
    NAME,
    PRECISE_HOSTNAME,
    SECTION,
    URI,
    WELL_KNOWN,
    TextForm,
    choice,
    generation_of,
    limited,
    limited_pairs,
    missing,
    optional,
    required,
)
from meshwright.specs.gateway.references import local_reference
from meshwright.specs.gateway.tolerance import close, is_of_cluster, unreported
from meshwright.specs.manifest import Manifest

_TARGETS: Final = "targetRefs"
_VALIDATION: Final = "validation"
_AUTHORITIES: Final = "caCertificateRefs"
_WELL_KNOWN: Final = "wellKnownCACertificates"
_MOST_TARGETS: Final = 16
_MOST_AUTHORITIES: Final = 8
_MOST_NAMES: Final = 5
_MOST_OPTIONS: Final = 16
_NAMED: Final[dict[str, tuple[str, TextForm]]] = {
    AltNameType.HOSTNAME: ("hostname", HOSTNAME),
    AltNameType.URI: ("uri", URI),
}
"""The field with the name for each type of name."""


@dataclass(frozen=True, slots=True)
class _Validation:
    hostname: str
    authorities: tuple[ObjectReference, ...]
    well_known: str
    names: tuple[AltName, ...]
    dropped: str


def backend_tls_policy(manifest: Manifest) -> BackendTLSPolicy:
    """Read a BackendTLSPolicy.

    An error refuses a manifest from a file. From a cluster every policy is read, because an unread one would
    let requests through in plain text. A `validation` that cannot be read lets requests fail.
    """
    spec = unreported(manifest.spec())
    targets, options = (
        _targets(spec),
        limited_pairs(spec, "options", _MOST_OPTIONS, ANNOTATION_VALUE),
    )
    if not spec.has(_VALIDATION):
        missing(spec, _VALIDATION, "must be a mapping")
    found = _validation(spec.section(_VALIDATION))
    unknown = close(spec)
    is_read = is_of_cluster(spec) or not spec.notes.refused
    return BackendTLSPolicy(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        targets=targets,
        hostname=found.hostname,
        authorities=found.authorities,
        well_known=found.well_known,
        names=found.names,
        generation=generation_of(manifest.metadata),
        created=manifest.metadata.text("creationTimestamp") or "",
        unused=(*(spec.at(name) for name in ("options",) if options), *unknown) if is_read else (),
        dropped=found.dropped,
    )


def _targets(spec: Fields) -> tuple[PolicyTarget, ...]:
    sections = limited(spec, _TARGETS, _MOST_TARGETS, least=1)
    targets = tuple(map(_target, sections))
    objects = [(target.kind, target.name) for target in targets]
    without = {(target.kind, target.name) for target in targets if target.section is None}
    for index in duplicates(objects):
        target = targets[index]
        if objects[index] in without:
            rule = f"must have a sectionName in each reference to {target.name:.80}"
            spec.notes.refuse(Code.DUPLICATE, sections[index].path, rule)
        elif targets.index(target) < index:
            rule = "must differ from the targets before by group, kind, name or sectionName"
            spec.notes.refuse(Code.DUPLICATE, sections[index].path, rule)
    return targets


def _target(fields: Fields) -> PolicyTarget:
    group = required(fields, "group", GROUP)
    kind = Kind(required(fields, "kind", KIND), group)
    target = PolicyTarget(kind, required(fields, "name", NAME), optional(fields, "sectionName", SECTION))
    fields.close()
    return target


def _validation(fields: Fields) -> _Validation:
    whole = fields.notes
    notes = fields.notes = whole.part()
    authorities = tuple(
        local_reference(section) for section in limited(fields, _AUTHORITIES, _MOST_AUTHORITIES)
    )
    well_known = optional(fields, _WELL_KNOWN, WELL_KNOWN) or ""
    if authorities and well_known:
        fields.wrong(_WELL_KNOWN, f"must be absent beside {_AUTHORITIES}")
    if not authorities and not well_known:
        fields.wrong(_AUTHORITIES, f"must have at least one item unless {_WELL_KNOWN} is set")
    names = tuple(_name(section) for section in limited(fields, "subjectAltNames", _MOST_NAMES))
    hostname = required(fields, "hostname", PRECISE_HOSTNAME)
    fields.close()
    whole.is_clean &= notes.is_clean
    whole.refused |= notes.refused
    return _Validation(hostname, authorities, well_known, names, notes.fault)


def _name(fields: Fields) -> AltName:
    if not fields.has("type"):
        missing(fields, "type", "must be Hostname or URI")
    chosen = AltNameType(choice(fields, "type", tuple(AltNameType), AltNameType.HOSTNAME))
    texts = {kind: optional(fields, *named) for kind, named in _NAMED.items()}
    for kind, (field, form) in _NAMED.items():
        if kind == chosen and texts[kind] is None:
            fields.wrong(field, f"must be present for the type {chosen}: {form.rule}")
        if kind != chosen and texts[kind] is not None:
            fields.wrong(field, f"must be absent for the type {chosen}")
    fields.close()
    return AltName(chosen, texts[chosen] or "")
