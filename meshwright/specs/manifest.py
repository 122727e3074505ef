"""The head of a manifest, common to all kinds: kind, version, key and metadata."""

from collections.abc import Mapping
from dataclasses import dataclass

from meshwright.mesh.kinds import GATEWAY_CLASS, NAMESPACE, Kind
from meshwright.mesh.names import Namespace, is_dns_label, is_dns_subdomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.workload import DRIVER_ANNOTATION
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.notes import Notes

DEFAULT_NAMESPACE = Namespace("default")
CLUSTER_WIDE = frozenset({NAMESPACE, GATEWAY_CLASS})

NAME_RULE = "must be a Kubernetes name: at most 253 characters a-z, 0-9, hyphens and dots"
LABEL_RULE = "must be a DNS label: 1 to 63 characters a-z, 0-9 and inner hyphens"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest during reading: its fields, and the notes for its problems."""

    key: ObjectKey
    version: str
    body: Fields
    metadata: Fields
    notes: Notes

    @property
    def namespace(self) -> Namespace:
        """Return the object's namespace."""
        return self.key.namespace

    def labels(self) -> tuple[tuple[str, str], ...]:
        """Return `metadata.labels` as sorted pairs."""
        return self.metadata.pairs("labels")

    def spec(self, *, required: bool = True) -> Fields:
        """Return `spec`, and refuse other fields beside it, which may be from an older version."""
        self.body.accept("apiVersion", "kind", "metadata", "status")
        spec = self.body.section("spec", required=required)
        self.body.close()
        return spec

    def top(self) -> Fields:
        """Return the manifest itself as fields, for API versions without `spec`."""
        self.body.accept("apiVersion", "kind", "metadata", "status")
        return self.body


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split `group/version`, for example `apps/v1` into `apps` and `v1`; `v1` has the empty group."""
    group, _, version = api_version.rpartition("/")
    return group, version


def key_of(kind: Kind, document: Mapping[str, object]) -> ObjectKey | None:
    """Return the key of a manifest, or None without a usable name."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not is_dns_subdomain(name):
        return None
    # Without the namespace, if one is written, so that two manifests of one Namespace have the same key.
    if kind in CLUSTER_WIDE:
        return ObjectKey(kind, Namespace(""), name)
    if namespace is None or namespace == "":
        return ObjectKey(kind, DEFAULT_NAMESPACE, name)
    if not isinstance(namespace, str) or not is_dns_label(namespace):
        return None
    return ObjectKey(kind, Namespace(namespace), name)


def check_metadata(document: Mapping[str, object], notes: Notes, path: str = "") -> None:
    """Report why `key_of` found no key for a document at `path` of a list (empty: the whole document)."""
    body = Fields(document, path, notes)
    metadata = body.section("metadata", required=True)
    if notes.refused:
        return
    name = metadata.required_text("name", NAME_RULE, is_dns_subdomain)
    if name and not is_dns_subdomain(name):
        metadata.wrong("name", NAME_RULE, Code.BAD_NAME)
    namespace = metadata.text("namespace", expected=LABEL_RULE, fits=is_dns_label)
    if namespace and not is_dns_label(namespace):
        metadata.wrong("namespace", LABEL_RULE, Code.BAD_NAME)


def sidecar_driver(manifest: Manifest) -> str:
    """Return the sidecar driver in a manifest's annotation, or "".

    Whether the driver exists is checked elsewhere.
    """
    annotations = manifest.metadata.section("annotations")
    name = annotations.text(DRIVER_ANNOTATION) or ""
    if name and not is_dns_label(name):
        annotations.wrong(DRIVER_ANNOTATION, "must be the name of a sidecar driver, for example envoy")
    return name
