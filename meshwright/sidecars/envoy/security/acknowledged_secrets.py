"""Secrets acknowledged by Envoys, by version; each secret is decoded once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from google.protobuf.any_pb2 import Any

from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets
from meshwright.sidecars.envoy import names
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.cache import NodeKey
from xds.protocol.resources.resource import SECRET, Resource, ResourceName, Version
from xds.protocol.resources.resources import NO_RESOURCES
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.stream import Accepted

_CERTIFICATE: Final = ResourceName(names.SERVICE_CERTIFICATE)
_ROOTS: Final = names.trust_root(TrustDomain(""))
"""Beginning of the names of trust bundles; a gateway has certificates of other authorities too."""


class TakenSecrets:
    """Finds the secrets in use: versions accepted on each stream, compared with the published ones."""

    def __init__(
        self,
        takers: Callable[[], Iterable[tuple[NodeKey, Accepted]]],
        published: Callable[[NodeKey], Snapshot | None],
    ) -> None:
        self._takers = takers
        self._published = published
        self._read: dict[Version, bytes] = {}

    def all(self) -> Iterator[AcknowledgedSecrets]:
        """Yield, for each proxy with a request for secrets, the secrets accepted on all streams.

        The method is a generator, because there may be thousands, and the caller yields the event loop
        between them.
        """
        # Each pass starts a new cache and moves secrets in use into it, so that old secrets are dropped.
        before, self._read = self._read, {}
        streams: dict[NodeKey, list[Accepted]] = {}
        for node, accepted in self._takers():
            streams.setdefault(node, []).append(accepted)
        for node, stream in streams.items():
            asked = [item for item in stream if item(SECRET, _CERTIFICATE) is not None]
            if asked:
                yield self._of(node, self._published(node), asked, before)

    def _of(
        self,
        node: NodeKey,
        published: Snapshot | None,
        streams: list[Accepted],
        before: Mapping[Version, bytes],
    ) -> AcknowledgedSecrets:
        secrets = NO_RESOURCES if published is None else published.resources(SECRET)
        result = {
            name: self._content(secrets[name], before)
            for name in secrets
            if {stream(SECRET, name) for stream in streams} == {secrets[name].version}
        }
        roots = b"".join(content for name, content in result.items() if name.startswith(_ROOTS))
        return AcknowledgedSecrets(node, roots, result.get(_CERTIFICATE, b""))

    def _content(self, resource: Resource, before: Mapping[Version, bytes]) -> bytes:
        """Return the public part of a secret, from a cache of secrets in use."""
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
