"""The Secret with a Pod's certificate, for Pods that do not join by tokens: its content and its next step.

Labels identify the Secret, and annotations have all data for decisions, so that keys are never read back.
Pure functions; `secret_writer` creates, lists and changes the Secrets.
"""

import base64
import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self

from certs.keys.material import ProxyCertificate
from meshwright.kubernetes.injection.credentials.pod_roots import MANAGED_BY, US
from meshwright.mesh.identity import ProxyName, ProxyNameError
from meshwright.sidecars.injection.names import PROXY_UUID_LABEL, secret_name
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE
from meshwright.specs.annotations import HOME

ORPHANED_AFTER: Final = timedelta(minutes=5)
"""Age at which a Secret without a Pod is deleted. An API server creates an admitted Pod at once."""

_PROXY: Final = "meshwright.dev/proxy"
_SERIAL: Final = "meshwright.dev/certificate-serial"
_ISSUED: Final = "meshwright.dev/certificate-issued"
_EXPIRES: Final = "meshwright.dev/certificate-expires"
_ROOTS: Final = "meshwright.dev/roots"


class Step(enum.Enum):
    """Next step for a Secret: set its Pod as owner, renew certificate and roots, or delete it."""

    OWN = enum.auto()
    RENEW = enum.auto()
    REMOVE = enum.auto()


@dataclass(frozen=True, slots=True)
class PodSecretState:
    """Data of one Secret: proxy name, certificate, digest of the roots, and whether a Pod owns it."""

    name: ProxyName
    serial: str
    made: datetime
    issued: datetime
    expires: datetime
    roots: str
    owned: bool

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self | None:
        """Parse the metadata of a proxy's Secret from the API server; return None for any other Secret."""
        metadata = raw["metadata"]
        annotations = metadata.get("annotations") or {}
        try:
            issued, expires = (datetime.fromisoformat(annotations[item]) for item in (_ISSUED, _EXPIRES))
            made = datetime.fromisoformat(metadata["creationTimestamp"])
            name = ProxyName.parse(annotations[_PROXY])
            is_whole = all(moment.tzinfo is not None for moment in (issued, expires, made))
            serial, roots = str(annotations[_SERIAL]), str(annotations[_ROOTS])
        except (KeyError, TypeError, ValueError, ProxyNameError):
            return None
        if not is_whole or metadata.get("name") != secret_name(name.uuid):
            return None
        return cls(name, serial, made, issued, expires, roots, bool(metadata.get("ownerReferences")))

    def is_due(self, now: datetime) -> bool:
        """Return whether two thirds of the certificate's lifetime have passed."""
        return now >= self.issued + (self.expires - self.issued) * 2 / 3


def is_young(secret_state: PodSecretState, now: datetime) -> bool:
    """Return whether the Pod of a Secret may be about to be created: no Pod owns it, and it is new."""
    return not secret_state.owned and now - secret_state.made < ORPHANED_AFTER


def selector(home: str) -> str:
    """Return the label selector of the Secrets of the control plane in namespace `home`."""
    return f"{MANAGED_BY}={US},{HOME}={home},{PROXY_UUID_LABEL}"


def document(certificate: ProxyCertificate, roots: bytes, home: str, now: datetime) -> Mapping[str, Any]:
    """Return the Secret of a newly issued certificate, for a Pod that is about to be created."""
    uuid = certificate.name.uuid
    labels = {MANAGED_BY: US, HOME: home, PROXY_UUID_LABEL: uuid}
    changing = content(certificate, roots, now)
    metadata = {"name": secret_name(uuid), "labels": labels, **changing["metadata"]}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", **changing, "metadata": metadata}


def content(certificate: ProxyCertificate, roots: bytes, now: datetime) -> dict[str, Any]:
    """Return the merge patch of a proxy's Secret for a new certificate or new roots."""
    files = {AUTHORITY_FILE: roots, CHAIN_FILE: certificate.chain_pem, KEY_FILE: certificate.key.reveal()}
    annotations = {
        _PROXY: str(certificate.name),
        _SERIAL: certificate.serial,
        _ISSUED: now.isoformat(),
        _EXPIRES: certificate.not_after.isoformat(),
        _ROOTS: digest(roots),
    }
    data = {name: base64.b64encode(file).decode("ascii") for name, file in files.items()}
    return {"metadata": {"annotations": annotations}, "data": data}


def owned_by(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the merge patch that makes the Pod the owner of a Secret, so that both are deleted together."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    return {"metadata": {"ownerReferences": [owner]}}


def digest(roots: bytes) -> str:
    """Return a digest of root certificates (PEM), as recorded in an annotation of each Secret."""
    return hashlib.sha256(roots).hexdigest()[:32]


def step(secret_state: PodSecretState, *, has_pod: bool, roots: bytes, now: datetime) -> Step | None:
    """Return the next step for a Secret, or None.

    `has_pod` counts only for a Secret without an owner.
    """
    if not secret_state.owned:
        if has_pod:
            return Step.OWN
        return Step.REMOVE if now - secret_state.made >= ORPHANED_AFTER else None
    return Step.RENEW if secret_state.is_due(now) or secret_state.roots != digest(roots) else None
