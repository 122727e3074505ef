"""Names of the keys with objects, below `/meshwright/TRUST-DOMAIN/objects/`.

    /meshwright/mesh.example/objects/split.smi-spec.io/TrafficSplit/shop/web
    /meshwright/mesh.example/objects/core/Service/shop/web
    /meshwright/mesh.example/objects/core/Namespace/-/shop

Kubernetes' core group is `core`, and the namespace of an object without one is `-`. A pure module.
"""

from dataclasses import dataclass
from typing import Final

from meshwright.etcd.values import Span
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace, is_dns_label, is_dns_subdomain
from meshwright.mesh.objects import ObjectKey
from meshwright.specs.manifest import CLUSTER_WIDE

FORM: Final = "objects/GROUP/KIND/NAMESPACE/NAME"
"""Form of a name as people read it, without the prefix of the mesh."""

_CORE: Final = "core"
_NO_NAMESPACE: Final = "-"
_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Names of the keys of one mesh."""

    trust_domain: str

    @property
    def span(self) -> Span:
        """Return the range of all keys with objects."""
        return Span(self._prefix + b"objects/", self._prefix + b"objects0")

    def name_of(self, key: ObjectKey) -> bytes:
        """Return the name of the key with an object."""
        group, namespace = key.kind.group or _CORE, key.namespace or _NO_NAMESPACE
        return self._prefix + "/".join(("objects", group, key.kind.name, namespace, key.name)).encode()

    def shown(self, name: bytes) -> str:
        """Return the name as people read it, for example `objects/core/Service/shop/web`."""
        return name.removeprefix(self._prefix).decode("utf-8", "backslashreplace")

    def object_of(self, name: bytes) -> ObjectKey | None:
        """Return the key of the object in a name; None for a name that `name_of` never returns."""
        words = self.shown(name).split("/")
        if len(words) != _WORDS:
            return None
        _, group, kind, namespace, short = words
        if not kind or not is_dns_subdomain(short):
            return None
        if namespace != _NO_NAMESPACE and not is_dns_label(namespace):
            return None
        key = ObjectKey(
            Kind(kind, "" if group == _CORE else group),
            Namespace("" if namespace == _NO_NAMESPACE else namespace),
            short,
        )
        is_wide = key.kind in CLUSTER_WIDE
        return key if is_wide != bool(key.namespace) and self.name_of(key) == name else None

    @property
    def _prefix(self) -> bytes:
        return f"/meshwright/{self.trust_domain}/".encode()
