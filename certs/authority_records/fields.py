"""Fields of the record `authority`, from and to the state of the authority.

A private key is encrypted for this record (`RecordSeal`). All other fields are public, but they say which
roots are trusted: their field `proof` shows that a server with the data key has written them. Otherwise,
whoever may write the record could add a root, and so be any service. A field that is missing is None in the
state. A writer keeps all fields that it does not know, and damaged ones that it does not change.

    {"ca": {"certificate": "-----BEGIN...", "key": "c2VhbGVk..."}, "rotation": {"stage": "trusting", ...},
     "service_issuers": {...}, "channel_issuers": {...}, "first_proxy": "3f9a02",
     "declared_roots": {"mesh/root-2026": "5f2c8a..."}, "proof": "9b1d..."}

A pure module.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from certs.errors import StateError
from certs.issuers import succession
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succession import Succession
from certs.keys.material import PrivateKey
from certs.roots import rotation
from certs.roots.authority_state import AuthorityState
from certs.roots.declared_roots import read_records, written_records
from certs.roots.rotation import Rotation
from certs.state.record_proofs import is_proven, with_proof
from certs.state.sealing import RecordSeal
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.key import key_of

AUTHORITY: Final = key_of("authority")
"""Key of the record."""

MOVING: Final = "moving"
"""Field of a record without a CA yet: a mesh is being moved into the store, and its CA comes last."""

MEND: Final = f"restore the record {AUTHORITY} from a backup"

T = TypeVar("T")

_CERTIFICATE: Final = "certificate"
_KEY: Final = "key"
_ROOTS: Final = "roots"
_STATE: Final = (
    "ca",
    "other",
    "rotation",
    "service_issuers",
    "channel_issuers",
    "first_proxy",
    "declared_roots",
)


def require_proof(fields: Fields, seal: RecordSeal) -> None:
    """Raise UnreadableContentError for a state that was not written with the data key of these servers."""
    if any(name in fields for name in _STATE) and not is_proven(fields, AUTHORITY, seal):
        raise UnreadableContentError(
            f"record {AUTHORITY}: the field proof does not belong to the other fields: they were "
            f"changed by hand, by another program, or with another data key; {MEND}"
        )


def require_moved(fields: Fields) -> None:
    """Raise StateError if a mesh is being moved into the store: no server may make another CA meanwhile."""
    moving = fields.get(MOVING)
    if moving is not None and "ca" not in fields:
        root = moving.get("root") if isinstance(moving, dict) else None
        raise StateError(
            f"a mesh (CA {root}) is being moved into the shared store: start this server again afterwards. "
            "If the move was interrupted, repeat it: the command `meshwright state move` or `meshwright "
            "state import`, or the start of the server with the old state directory"
        )


def state_in(fields: Fields, seal: RecordSeal) -> AuthorityState:
    """Return the state in the fields of the record, with Unreadable for each damaged field."""
    return AuthorityState(
        _ca(fields, "ca", seal),
        _ca(fields, "other", seal),
        _object(fields, "rotation", rotation.read),
        _object(fields, "service_issuers", succession.read),
        _object(fields, "channel_issuers", succession.read),
        _text("first_proxy", fields.get("first_proxy")),
        _object(fields, "declared_roots", read_records) or {},
    )


def with_state(fields: Fields, state: AuthorityState, seal: RecordSeal) -> Fields:
    """Return the fields of the record with another state; fields without a change stay as they are."""
    was = state_in(fields, seal)
    result = dict(fields)
    # A CA that changes places keeps its content, even with a key that cannot be read here.
    stored = [(was.ca, fields.get("ca")), (was.other, fields.get("other"))]
    for name, ca in (("ca", state.ca), ("other", state.other)):
        kept = [value for known, value in stored if known == ca]
        if ca is None:
            result[name] = None
        else:
            result[name] = kept[0] if kept else _written_ca(ca, seal)
    # An unreadable part stays as it is, for a repair.
    if isinstance(state.rotation, Rotation | None) and state.rotation != was.rotation:
        result["rotation"] = _merged(fields.get("rotation"), state.rotation, rotation.written)
    for name, after, before in (
        ("service_issuers", state.service_issuers, was.service_issuers),
        ("channel_issuers", state.channel_issuers, was.channel_issuers),
    ):
        if isinstance(after, Succession | None) and after != before:
            result[name] = _merged(fields.get(name), after, succession.written)
    if not isinstance(state.first_proxy, Unreadable) and state.first_proxy != was.first_proxy:
        result["first_proxy"] = state.first_proxy
    if not isinstance(state.declared_roots, Unreadable) and state.declared_roots != was.declared_roots:
        result["declared_roots"] = json.loads(written_records(state.declared_roots))
    return with_proof({name: value for name, value in result.items() if value is not None}, AUTHORITY, seal)


def _ca(fields: Fields, name: str, seal: RecordSeal) -> StoredCa | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        damaged = _damaged(name, "it must be a JSON object")
        return StoredCa(damaged, damaged)
    certificate, sealed, roots = (
        _text(f"{name}.{part}", value.get(part)) for part in (_CERTIFICATE, _KEY, _ROOTS)
    )
    return StoredCa(_encoded(certificate), _opened(f"{name}.{_KEY}", sealed, seal), _encoded(roots))


def _opened(name: str, sealed: str | Unreadable | None, seal: RecordSeal) -> PrivateKey | Unreadable | None:
    if not isinstance(sealed, str):
        return sealed
    try:
        return PrivateKey(seal.opened(sealed, AUTHORITY))
    except ValueError as error:
        return _damaged(name, str(error))


def _written_ca(ca: StoredCa, seal: RecordSeal) -> Mapping[str, str]:
    """Return a CA as stored; raise StateError for one with a part that cannot be read."""
    result: dict[str, str] = {}
    for name, part in ((_CERTIFICATE, ca.certificate), (_KEY, ca.key), (_ROOTS, ca.roots)):
        match part:
            case None:
                pass
            case PrivateKey():
                result[name] = seal.closed(part.reveal(), AUTHORITY)
            case Unreadable(reason):
                raise StateError(reason)
            case _:
                result[name] = part.decode(errors="replace")
    return result


def _merged(before: object, value: T | None, write: Callable[[T], bytes]) -> Mapping[str, object] | None:
    """Return a value as stored, with the fields of `before` that this version does not know."""
    if value is None:
        return None
    return {**(before if isinstance(before, dict) else {}), **json.loads(write(value))}


def _object(fields: Fields, name: str, read: Callable[[bytes], T]) -> T | Unreadable | None:
    value = fields.get(name)
    if value is None:
        return None
    try:
        return read(json.dumps(value).encode())
    except ValueError as error:
        return _damaged(name, str(error))


def _text(name: str, value: object) -> str | Unreadable | None:
    if value is None or isinstance(value, str):
        return value
    return _damaged(name, "it must be a text")


def _encoded(text: str | Unreadable | None) -> bytes | Unreadable | None:
    return text.encode() if isinstance(text, str) else text


def _damaged(name: str, why: str) -> Unreadable:
    return Unreadable(f"field {name} of the record {AUTHORITY} is damaged: {why}; {MEND}")
