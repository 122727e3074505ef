"""What Envoys have taken of the secrets in force, by what they acknowledge: read of each secret once."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from google.protobuf.any_pb2 import Any

from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from sidecars.contract.contexts import Taken
from sidecars.envoy import names
from xds.cache import NodeKey
from xds.protocol.resource import SECRET, Resource, ResourceName, Version
from xds.protocol.resources import NO_RESOURCES
from xds.protocol.snapshot import Snapshot
from xds.protocol.type_urls import TypeUrl

Accepted = Callable[[TypeUrl, ResourceName], Iterable[tuple[NodeKey, Version]]]

_CERTIFICATE: Final = ResourceName(names.SERVICE_CERTIFICATE)


class TakenSecrets:
    """Compares what each stream has accepted with what is published for its proxy."""

    def __init__(self, accepted: Accepted, published: Callable[[NodeKey], Snapshot | None]) -> None:
        self._accepted = accepted
        self._published = published
        self._read: dict[Version, bytes] = {}

    def all(self) -> list[Taken]:
        """Return of each proxy that has asked for secrets what it has taken, on each of its streams."""
        before, self._read = self._read, {}
        versions = functools.cache(self._versions)
        return [self._of(node, self._published(node), versions, before) for node in versions(_CERTIFICATE)]

    def _of(
        self,
        node: NodeKey,
        published: Snapshot | None,
        versions: Callable[[ResourceName], Mapping[NodeKey, set[Version]]],
        before: Mapping[Version, bytes],
    ) -> Taken:
        secrets = NO_RESOURCES if published is None else published.resources(SECRET)
        found = {
            name: self._content(secrets[name], before)
            for name in secrets
            if versions(name).get(node) == {secrets[name].version}
        }
        roots = b"".join(content for name, content in found.items() if name != _CERTIFICATE)
        return Taken(node, roots, found.get(_CERTIFICATE, b""))

    def _versions(self, name: ResourceName) -> Mapping[NodeKey, set[Version]]:
        """Return which versions of a secret each proxy has taken, on all its streams."""
        found: dict[NodeKey, set[Version]] = {}
        for node, version in self._accepted(SECRET, name):
            found.setdefault(node, set()).add(version)
        return found

    def _content(self, resource: Resource, before: Mapping[Version, bytes]) -> bytes:
        """Return what is public of a secret; what nobody has any more is forgotten."""
        if (known := self._read.get(resource.version, before.get(resource.version))) is None:
            known = _public(resource)
        self._read[resource.version] = known
        return known


def _public(resource: Resource) -> bytes:
    secret = secret_pb2.Secret()
    Any.FromString(resource.body).Unpack(secret)
    return secret.tls_certificate.certificate_chain.inline_bytes or (
        secret.validation_context.trusted_ca.inline_bytes
    )
