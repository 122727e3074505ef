"""The stored state of the mesh's authority as one value, and the steps from one state to the next. Pure.

The state must survive a restart of the server: the CA, a root rotation under way with the other CA, and
records of former issuers. The ledger and issued certificates are not part of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never

from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succeeding_issuer import Role
from certs.issuers.succession import Succession
from certs.roots.rotation import Fingerprint, Rotation
from meshwright.mesh.names import SecretName

_NO_ROOTS: Final[Mapping[SecretName, Fingerprint]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AuthorityState:
    """The stored state of one mesh's authority. A field that cannot be read is Unreadable, the others hold.

    - `ca` signs; None before the first start, or if the CA belongs to another program. `other` is the CA
      beside it in a root rotation.
    - `rotation` is the root rotation under way.
    - `service_issuers` and `channel_issuers` are the present and former issuers of service certificates, and
      of proxy and server certificates; None if there has only been the CA itself.
    - `first_proxy` is the serial of the first proxy certificate, which identifies the ledger.
    - `declared_roots` has the CA of each Secret that a MeshRootCertificate names, for example
      `mesh/root-2026`.
    """

    ca: StoredCa | None = None
    other: StoredCa | None = None
    rotation: Rotation | Unreadable | None = None
    service_issuers: Succession | Unreadable | None = None
    channel_issuers: Succession | Unreadable | None = None
    first_proxy: str | Unreadable | None = None
    declared_roots: Mapping[SecretName, Fingerprint] | Unreadable = field(default_factory=lambda: _NO_ROOTS)

    @property
    def has_ca(self) -> bool:
        """Return whether there is a CA, or a part of one; otherwise a first start would create one.

        During a root rotation there is a CA, even if its folder is missing after a crash. Raises StateError
        if the certificate is unreadable.
        """
        return self.rotation is not None or (self.ca is not None and self.ca.is_there)

    def issuers(self, role: Role) -> Succession | Unreadable | None:
        """Return the issuers of a role."""
        match role:
            case Role.SERVICES:
                return self.service_issuers
            case Role.CHANNEL:
                return self.channel_issuers
            case _:
                assert_never(role)

    def with_issuers(self, role: Role, succession: Succession) -> "AuthorityState":
        """Return the state with other issuers of a role."""
        match role:
            case Role.SERVICES:
                return replace(self, service_issuers=succession)
            case Role.CHANNEL:
                return replace(self, channel_issuers=succession)
            case _:
                assert_never(role)

    def stepped(self, rotation: Rotation | None) -> "AuthorityState":
        """Return the state after a step of the root rotation: the CAs change places with the signer.

        None ends the rotation, and removes the other CA with its key.
        """
        if rotation is None:
            return replace(self, other=None, rotation=None)
        exchanged = isinstance(self.rotation, Rotation) and self.rotation.signer != rotation.signer
        ca, other = (self.other, self.ca) if exchanged else (self.ca, self.other)
        return replace(self, ca=ca, other=other, rotation=rotation)


def is_step(before: AuthorityState, after: AuthorityState) -> bool:
    """Return whether a store may put one state in the place of another.

    A CA is created where there is none. It changes only by a root rotation, so that no mistake of a caller
    removes a key in use.
    """
    was, now = _certificates(before), _certificates(after)
    match before.rotation, after.rotation:
        case None, None:
            return now == was or (was == (None, None) and now[1] is None)
        case None, Rotation():
            return None not in now and now[0] == was[0]
        case Rotation(signer=old), Rotation(signer=new):
            return now == (was if old == new else was[::-1])
        case Rotation() | Unreadable(), None:
            return now == (was[0], None)
        case Unreadable(), Rotation():  # written again by a server that knows it
            return None not in now and now in (was, was[::-1])
        case _:
            return (before.rotation, was) == (after.rotation, now)


def _certificates(state: AuthorityState) -> tuple[bytes | Unreadable | None, bytes | Unreadable | None]:
    """Return the certificates of both CAs. Keys are not compared, because a key may be sealed meanwhile."""
    own, other = (None if stored is None else stored.certificate for stored in (state.ca, state.other))
    return own, other
