"""Next step of a root change when objects declare the roots, and the reason for waiting. A pure module.

The objects declare the final state, and the stages of `certs.roots.rotation` lead there: a root declared
beside the signing one is trusted first. The declared root signs once the other may not sign any more, and the
other is trusted until the last object declaring it is deleted. For example, objects A (active, signing) and B
(passive): B becomes trusted. Then A is set to passive and B to active: B signs.
"""

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from certs.roots.rotation import Fingerprint, Rotation, Stage
from certs.state.json_fields import json_object
from meshwright.mesh.names import Namespace, SecretName


@dataclass(frozen=True, slots=True)
class DeclaredRoot:
    """A declared root: the `name` of the Secret, and the fingerprint, None before the creation.

    `signs` is True for a root allowed to sign; otherwise the root is only trusted.
    """

    name: str
    fingerprint: Fingerprint | None
    signs: bool


class ChangeAction(enum.Enum):
    """Action on a change under way: ABORT it before the other root signs, or TURN the roots afterwards."""

    ABORT = enum.auto()
    TURN = enum.auto()


Declared = Sequence[DeclaredRoot]
"""The roots in use, oldest first."""


def next_act(
    rotation: Rotation | None, signer: Fingerprint, declared: Declared
) -> ChangeAction | DeclaredRoot | None:
    """Return the next action: the root to start a change to, or an action on the change; None to wait.

    If all roots are only trusted, the current one continues to sign.
    """
    if declared and not any(root.signs for root in declared):
        return None
    if rotation is None:
        return _begun(signer, declared)
    match rotation.stage:
        case Stage.TRUSTING if not _holds(declared, rotation.other):
            return ChangeAction.ABORT
        case Stage.REPLACING if _signs(declared, rotation.other) and not _signs(declared, rotation.signer):
            return ChangeAction.TURN
        case _:
            return None


def hold_reason(rotation: Rotation, declared: Declared) -> str:
    """Return why the next stage of a root rotation must wait, as the end of a sentence; otherwise ""."""
    if declared and not any(root.signs for root in declared):
        return "all MeshRootCertificates are inactive, so none would sign; set spec.role of one to active"
    match rotation.stage:
        case Stage.TRUSTING if _signs(declared, rotation.signer):
            return (
                "the MeshRootCertificate of the root that signs is still active; this root "
                "signs until that object is passive or deleted"
            )
        case Stage.TRUSTING if not _signs(declared, rotation.other):
            return "the MeshRootCertificate of the new root is not active yet"
        case Stage.REPLACING if _holds(declared, rotation.other):
            return (
                "the MeshRootCertificate of the former root still exists; this root is "
                "trusted until that object is inactive or deleted"
            )
        case _:
            return ""


def state_of(root: Fingerprint | None, rotation: Rotation | None, signer: Fingerprint) -> str:
    """Return the state of a root in the terms of Open Service Mesh."""
    if rotation is None or root not in (rotation.signer, rotation.other):
        return "active" if root == signer else "inactive"
    is_signer = root == rotation.signer
    match rotation.stage:
        case Stage.TRUSTING:
            return "active" if is_signer else "validatingRollout"
        case Stage.REPLACING:
            return "issuingRollout" if is_signer else "issuingRollback"
        case Stage.RETIRING:
            return "active" if is_signer else "validatingRollback"


def written_records(roots: Mapping[SecretName, Fingerprint]) -> bytes:
    """Return the CA of each Secret as JSON, in the form parsed by `read_records`.

    For example: `{"mesh/root-2026": "5f2c8a..."}`.
    """
    fingerprints = {str(name): root for name, root in sorted(roots.items())}
    return (json.dumps(fingerprints, indent=2) + "\n").encode("ascii")


def read_records(content: bytes) -> Mapping[SecretName, Fingerprint]:
    """Parse the CA of each Secret from the JSON of `written_records`. Raises ValueError for anything else."""
    return {secret_name(name): Fingerprint(str(root)) for name, root in json_object(content).items()}


def secret_name(text: str) -> SecretName:
    """Parse the name of a Secret, for example `mesh/root-2026`. Raises ValueError."""
    namespace, slash, rest = text.partition("/")
    if not slash:
        raise ValueError(f"{text[:80]} is not of the form NAMESPACE/NAME")
    return SecretName(Namespace(namespace), rest)


def _begun(signer: Fingerprint, declared: Declared) -> DeclaredRoot | None:
    """Return the root to change to; if the signing root may not sign, one that may."""
    others = [root for root in declared if root.fingerprint != signer]
    if not _signs(declared, signer):
        others = [root for root in others if root.signs]
    return next(iter(others), None)


def _signs(declared: Declared, fingerprint: Fingerprint) -> bool:
    return any(root.signs for root in declared if root.fingerprint == fingerprint)


def _holds(declared: Declared, fingerprint: Fingerprint) -> bool:
    return any(root.fingerprint == fingerprint for root in declared)
