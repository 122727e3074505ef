"""Proofs that servers of the mesh have written the fields of a record. A pure module.

Others may have write access to shared records without the data key, for example everybody who may write the
kind Record in Kubernetes. The field `proof` is computed with the data key from the other fields and the key
of the record, so that neither a change nor a copy of another record has a valid one.
"""

import json
from collections.abc import Mapping
from typing import Final

from certs.state.sealing import RecordSeal

_PROOF: Final = "proof"


def without_proof(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the other fields of a record."""
    return {name: value for name, value in fields.items() if name != _PROOF}


def with_proof(fields: Mapping[str, object], key: str, seal: RecordSeal) -> dict[str, object]:
    """Return the fields of the record `key` with their proof, in the place of an earlier one."""
    others = without_proof(fields)
    return {**others, _PROOF: seal.proof(_proven(others), key)}


def is_proven(fields: Mapping[str, object], key: str, seal: RecordSeal) -> bool:
    """Return whether a server with the data key has written these fields into the record `key`."""
    proof = fields.get(_PROOF)
    return isinstance(proof, str) and seal.proves(proof, _proven(without_proof(fields)), key)


def _proven(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
