"""Named overlays of a sidecar: parsing them, and selecting the overlays of a Pod.

An overlay has strategic merge patches: `sidecar` and `interception` for the two containers, `volumes` for the
Pod. For example `{sidecar: {resources: {limits: {cpu: "2"}}}}` raises the CPU limit of the sidecar. Field
names are checked against core/v1 Container; their values are left to the API server.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from meshwright.mesh.names import is_dns_label
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import Overlay
from meshwright.sidecars.injection.merging import DIRECTIVE, MERGE_KEYS
from meshwright.specs.annotations import OVERLAYS
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import LABEL_RULE

CONTAINER_FIELDS: Final = frozenset(
    {
        *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe"),
        *("ports", "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules"),
        *("securityContext", "startupProbe", "stdin", "stdinOnce", "terminationMessagePath"),
        *("terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts", "workingDir"),
    }
)
"""Fields of a container (core/v1, Kubernetes 1.34), except `name`."""
_DIRECTIVES: Final = frozenset({"delete", "replace"})


class OverlayReader:
    """Parser for the field `overlays` of the injector's configuration."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields.section("overlays")

    def read(self) -> Iterator[Overlay]:
        """Yield the overlays of the configuration in the order of their names, and note the faults."""
        for name in sorted(self._fields.names()):
            if not is_dns_label(name):
                self._fields.wrong(name, LABEL_RULE, Code.BAD_NAME)
            fields = self._fields.section(name)
            yield Overlay(
                name,
                sidecar=_container(fields, "sidecar"),
                interception=_container(fields, "interception"),
                volumes=tuple(_volumes(fields)),
            )
            fields.close()
        self._fields.close()


def chosen(
    overlays: Mapping[str, Overlay], defaults: Sequence[str], namespace: NamespaceObject, pod: Pod
) -> tuple[Overlay, ...]:
    """Return a Pod's overlays in the order of application: first the mesh's, then the Pod's own.

    The namespace's annotation counts for a Pod without the annotation. Raises CannotPatchError for the name
    of an unknown overlay.
    """
    own = (pod.get("metadata", {}).get("annotations") or {}).get(OVERLAYS)
    text = dict(namespace.annotations).get(OVERLAYS, "") if own is None else own
    whose = "the namespace's " if own is None else ""
    named = [item.strip() for item in text.split(",") if item.strip()]
    for name in named:
        if name not in overlays:
            known = ", ".join(sorted(overlays)) or "none"
            raise CannotPatchError(
                f"{whose}annotation {OVERLAYS} has {name!r}, which is not an overlay; the "
                f"overlays are: {known}"
            )
    return tuple(overlays[item] for item in dict.fromkeys((*defaults, *named)))


def _container(fields: Fields, name: str) -> Mapping[str, object]:
    section = fields.section(name)
    section.accept(DIRECTIVE, *sorted(CONTAINER_FIELDS))
    if section.has("name"):
        section.accept("name")
        section.wrong(
            "name", "must be left out, because the field itself names the container", Code.UNKNOWN_FIELD
        )
    section.close()
    result = {item: section.raw(item) for item in section.names()}
    _check(section, result, section.path)
    return result


def _volumes(fields: Fields) -> Iterator[Mapping[str, object]]:
    for section in fields.sections("volumes"):
        section.required_text("name", "must be the name of the volume")
        result = {name: section.raw(name) for name in section.names()}
        _check(section, result, section.path)
        yield result


def _check(fields: Fields, value: object, path: str) -> None:
    """Note the faults of a patch at any depth: an unknown directive, or a list item without its name."""
    if not isinstance(value, Mapping):
        return
    for name, inner in value.items():
        where = f"{path}.{name}"
        if str(name).startswith("$") and (name != DIRECTIVE or inner not in _DIRECTIVES):
            fields.notes.refuse(Code.WRONG_VALUE, where, "must be $patch: delete or $patch: replace", inner)
        key = MERGE_KEYS.get(str(name))
        if key is not None and inner is not None and not isinstance(inner, list):
            fields.notes.refuse(Code.WRONG_TYPE, where, "must be a list", inner)
        elif isinstance(inner, list):
            for index, item in enumerate(inner):
                _check(fields, item, f"{where}[{index}]")
                if key is not None and not (isinstance(item, Mapping) and item.get(key) is not None):
                    at = f"{where}[{index}]"
                    fields.notes.refuse(
                        Code.MISSING, at, f"must have {key}, because list items are merged by this field"
                    )
        else:
            _check(fields, inner, where)
