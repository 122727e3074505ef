"""Migration of a MeshConfig, field by field: kept fields, and their replacements elsewhere.

Each field is given to the reader in a MeshConfig with this field alone. The written MeshConfig omits fields
without effect, and fields with wrong values for Meshwright, such as Open Service Mesh's images, which have no
agent.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.objects import of_problem, read
from meshwright.mesh.kinds import MESH_CONFIG

_CHARTS: Final = (
    "Open Service Mesh's image does not contain Meshwright's agent; the chart's value proxyImage names "
    "the image"
)
_LEVELS: Final[Mapping[object, str]] = {
    **dict.fromkeys(("trace", "debug"), "debug"),
    "info": "info",
    **dict.fromkeys(("warn", "warning"), "warning"),
    **dict.fromkeys(("error", "fatal", "panic", "disabled"), "error"),
}
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_PRIVILEGED: Final = "privileged-init"
_KEYS: Final = (2048, 3072, 4096)


@dataclass(frozen=True, slots=True)
class FieldReplacement:
    """Replacement of a field: settings of the server, the injector's configuration, and values of the chart.

    `stays`: the MeshConfig keeps the field as well.
    """

    description: str
    settings: Mapping[str, object] = field(default_factory=dict)
    injection: Mapping[str, object] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    stays: bool = False


@dataclass(frozen=True, slots=True)
class MeshConfigMigration:
    """Result of migrating a MeshConfig: findings, the new manifest if possible, and values for the chart."""

    findings: tuple[Finding, ...]
    manifest: Document | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    injection: Mapping[str, object] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)


def configured(document: Document, home: str) -> MeshConfigMigration:
    """Migrate a MeshConfig to `home`, the namespace of the control plane."""
    what, findings, spec = named(document), list[Finding](), dict[str, Any]()
    if refused := _refused(what, document):
        return MeshConfigMigration(refused)
    settings: dict[str, object] = {}
    injection: dict[str, Any] = {}
    values: dict[str, object] = {}
    for section, name, value in _fields(mapping(document.get("spec"))):
        path = ".".join(filter(None, ("spec", section, name)))
        result, elsewhere = _of_field(what, document, section, name, value, path)
        findings += result
        if elsewhere is not None:
            settings |= elsewhere.settings
            injection |= elsewhere.injection
            values |= elsewhere.values
        works = all(item.standing is MigrationStatus.WORKS for item in result) and not _is_without_effect(
            value
        )
        if works if elsewhere is None else elsewhere.stays:
            _put(spec, section, name, value)
    where = mapping(document.get("metadata")).get("namespace") or ""
    if where != home:
        text = f"counts in the control plane's own namespace, which is {home}"
        findings.append(Finding(what, MigrationStatus.REWRITTEN, text, "metadata.namespace"))
    metadata = _metadata(mapping(document.get("metadata")), home)
    head = {"apiVersion": document.get("apiVersion"), "kind": MESH_CONFIG.name, "metadata": metadata}
    return MeshConfigMigration(tuple(findings), {**head, "spec": spec}, settings, injection, values)


def _metadata(metadata_before: Document, home: str) -> Document:
    """Return the metadata of the MeshConfig in `home`.

    A MeshConfig in `home` is overwritten, so its labels and annotations are kept: applying an object without
    them would delete them.
    """
    metadata: Document = {"name": metadata_before.get("name") or "osm-mesh-config", "namespace": home}
    if metadata_before.get("namespace") != home:
        return metadata
    annotations = mapping(metadata_before.get("annotations"))
    # kubectl writes this annotation itself on each apply.
    kept = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    return metadata | {
        name: held
        for name, held in (("labels", mapping(metadata_before.get("labels"))), ("annotations", kept))
        if held
    }


def _refused(subject: str, document: Document) -> tuple[Finding, ...]:
    """Return the problems of a MeshConfig outside of `spec`, which prevent a migration."""
    # With an empty spec, only problems of the other fields remain.
    without = {**document, "spec": {}} if isinstance(document.get("spec"), dict | None) else document
    result = (of_problem(subject, problem) for problem in read(without).problems)
    return tuple(item for item in result if item.standing is MigrationStatus.REFUSED)


def _fields(spec: Document) -> Iterator[tuple[str, str, object]]:
    """Yield section, field and value; a value outside any section has an empty section."""
    for section, held in spec.items():
        if isinstance(held, dict):
            yield from ((section, name, value) for name, value in held.items())
        else:
            yield "", section, held


def _put(spec: Document, section: str, name: str, value: object) -> None:
    (spec.setdefault(section, {}) if section else spec)[name] = value


def _of_field(
    subject: str, document: Document, section: str, name: str, value: object, path: str
) -> tuple[list[Finding], FieldReplacement | None]:
    alone: Document = {}
    _put(alone, section, name, value)
    # Alone, so that every problem belongs to this field.
    problems = read({**document, "spec": alone}).problems
    result = [of_problem(subject, problem) for problem in problems]
    if any(item.standing is MigrationStatus.REFUSED for item in result):
        return result, None
    if _is_without_effect(value):
        return [Finding(subject, MigrationStatus.WORKS, "is off or empty", path)], None
    if (translate := _ELSEWHERE.get(path)) is not None and (elsewhere := translate(value)) is not None:
        code = result[0].code if result else ""
        return [Finding(subject, MigrationStatus.REWRITTEN, elsewhere.description, path, code)], elsewhere
    if not result:
        return [Finding(subject, MigrationStatus.WORKS, "as it is", path)], None
    return [Finding(subject, item.standing, item.said, path, item.code) for item in result], None


def _is_without_effect(value: object) -> bool:
    """Return whether a value is off, zero or empty, and so has no effect."""
    if isinstance(value, dict) and value.get("enable") is False:
        return True
    return value in (None, False, 0, "", "0s") or (isinstance(value, list | dict) and not value)


def _image(_value: object) -> FieldReplacement:
    return FieldReplacement(_CHARTS)


def _resources(value: object) -> FieldReplacement:
    text = "the injector's configuration has it (sidecar.resources), for both containers"
    return FieldReplacement(text, injection={"sidecar": {"resources": value}})


def _privileged(_value: object) -> FieldReplacement:
    context = {"privileged": True, "allowPrivilegeEscalation": True}
    overlay = {_PRIVILEGED: {"interception": {"securityContext": context}}}
    text = (
        "an overlay for the init containers has the same effect; the CNI plug-in replaces the init containers"
    )
    return FieldReplacement(text, injection={"defaultOverlays": [_PRIVILEGED], "overlays": overlay})


def _connections(value: object) -> FieldReplacement:
    return FieldReplacement("replaced by the server's setting max_streams", {"max_streams": value})


def _level(value: object) -> FieldReplacement | None:
    level = _LEVELS.get(value) if isinstance(value, str) else None
    return (
        None
        if level is None
        else FieldReplacement("replaced by the server's setting log_level", {"log_level": level})
    )


def _key(value: object) -> FieldReplacement | None:
    if value not in _KEYS:
        return None
    text = "replaced by the server's setting service_certificate_key; its default is ECDSA P-256"
    return FieldReplacement(text, {"service_certificate_key": f"rsa-{value}"})


def _gateway(value: object) -> FieldReplacement | None:
    """Permit writing the Secret of a gateway's certificate; without the chart's value, RBAC forbids it."""
    secret = mapping(mapping(value).get("secret"))
    name, namespace = secret.get("name"), secret.get("namespace")
    if not name or not namespace:
        return None
    text = "with the chart's value ingressGateway.secrets, which permits its Secret to be written"
    permitted = {"ingressGateway": {"secrets": [{"name": name, "namespace": namespace}]}}
    return FieldReplacement(text, values=permitted, stays=True)


_ELSEWHERE: Final[Mapping[str, Callable[[object], FieldReplacement | None]]] = {
    "spec.sidecar.envoyImage": _image,
    "spec.sidecar.sidecarImage": _image,
    "spec.sidecar.envoyWindowsImage": _image,
    "spec.sidecar.sidecarWindowsImage": _image,
    "spec.sidecar.initContainerImage": _image,
    "spec.sidecar.resources": _resources,
    "spec.sidecar.enablePrivilegedInitContainer": _privileged,
    "spec.sidecar.maxDataPlaneConnections": _connections,
    "spec.observability.osmLogLevel": _level,
    "spec.certificate.certKeyBitSize": _key,
    "spec.certificate.ingressGateway": _gateway,
}
"""Replacements of fields, by path. If a function returns None, the reader's finding is used."""
