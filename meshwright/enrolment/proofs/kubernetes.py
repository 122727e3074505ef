"""Proof by ServiceAccount token: the API server names the Pod, and the mesh knows the Pod's proxy.

A token must have our audience and be bound to a Pod, like tokens of a projected volume. The API server
rejects a token whose Pod has been deleted or replaced. A token without a Pod proves only the ServiceAccount,
and is refused.
"""

import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from meshwright.enrolment.proofs.contract import (
    Entitlement,
    Evidence,
    ProofPending,
    ProofRefusal,
    ProofRefused,
)
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.workload import WorkloadKey

KIND: Final = "kubernetes"
AUDIENCE: Final = "meshwright"
"""Audience that the projected volume of the token must name."""
MOST_BYTES: Final = 16 * 1024

_PROVEN: Final = re.compile(
    rf"{KIND} Pod (?P<namespace>[a-z0-9-]+)/(?P<pod>[a-z0-9.-]+) \((?P<uid>[^()\s]+)\)"
)
_USER: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class PodProof:
    """A Pod that has joined by its token, as a ledger entry's `joined_by` names it."""

    pod: WorkloadKey
    uid: str


def is_of_pod(joined_by: str) -> bool:
    """Return whether a ledger entry's `joined_by` is the token of a Pod."""
    return joined_by.startswith(f"{KIND} ")


def pod_proof(joined_by: str) -> PodProof | None:
    """Return the Pod in `joined_by`, for example in `kubernetes Pod shop/cart-1 (8a)`.

    Return `None` for another proof, and for a Pod whose name was too long for the ledger.
    """
    match = _PROVEN.fullmatch(joined_by)
    if match is None:
        return None
    return PodProof(WorkloadKey(Namespace(match["namespace"]), match["pod"]), match["uid"])


Review = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Function that sends a TokenReview (authentication.k8s.io/v1) and returns the API server's answer.

Raises ProofUndecided.
"""


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Identity in a token according to the API server: ServiceAccount, Pod name and Pod UID.

    `node` is the Pod's node; empty with API servers before 1.30, which do not report it.
    """

    identity: ServiceIdentity
    pod: str
    uid: str
    node: str = ""

    @property
    def key(self) -> WorkloadKey:
        """Return the Pod's namespace and name."""
        return WorkloadKey(self.identity.namespace, self.pod)

    def __str__(self) -> str:
        return f"Pod {self.key} ({self.uid})"


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """A Pod as the mesh knows it: ServiceAccount, UID, node, and the proxy, if any."""

    identity: ServiceIdentity
    uid: str
    node: str
    proxy: ProxyName | None


SeenAs = Callable[[WorkloadKey], PodIdentity | None]
"""Function that returns the mesh's knowledge of a Pod, or `None`."""


class KubernetesProof:
    """Judge of Kubernetes ServiceAccount tokens: each is checked by the API server with a TokenReview."""

    kind = KIND

    def __init__(self, review: Review, seen_as: SeenAs) -> None:
        self._review = review
        self._seen_as = seen_as

    async def recognise(self, evidence: Evidence) -> str:
        """Return the UID of the Pod in the token's claims, if the mesh knows this Pod with this UID.

        The API server is not asked. A UID is random, and known only to those with read access to the Pod.
        """
        key, uid = claimed(evidence.data)
        seen = None if key is None or not uid else self._seen_as(key)
        return uid if seen is not None and seen.uid == uid else ""

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return the proxy of the Pod; raise ProofPending while the mesh does not know the Pod."""
        del now  # the API server checks the validity
        shown = read_review(await self._review(question(evidence.data)))
        return Entitlement(holder(shown, self._seen_as(shown.key)), str(shown))


def holder(shown: TokenIdentity, seen: PodIdentity | None) -> ProxyName:
    """Return the proxy of a Pod known to both the API server and the mesh.

    Raises ProofPending if the mesh may be behind: the Pod is unknown, an older Pod of this name is known, or
    the Pod's proxy is unknown. Raises ProofRefused if both describe the same Pod differently.
    """
    if seen is None or not seen.uid:
        raise ProofPending(f"{shown} of ServiceAccount {shown.identity} is not known to the mesh yet")
    # The name was reused: either the mesh or the API server is a little behind.
    if shown.uid != seen.uid:
        raise ProofPending(f"{shown}: the mesh knows a Pod of the same name with the UID {seen.uid}")
    for what, value, known in (
        ("has the ServiceAccount", shown.identity, seen.identity),
        ("runs on the node", shown.node or seen.node, seen.node or shown.node),
    ):
        if value != known:
            words = f"{shown}: the token says that the Pod {what} {value}, but the mesh has {known}"
            raise ProofRefused(ProofRefusal.OTHER_POD, words, str(shown))
    if seen.proxy is None:
        raise ProofPending(
            f"{shown} of ServiceAccount {shown.identity} does not have a known proxy in the mesh"
        )
    return seen.proxy


def claimed(token: bytes) -> tuple[WorkloadKey | None, str]:
    """Return the Pod and the UID from the unverified claims of a token; `None` and empty for any other text.

    https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens
    """
    parts = token.strip().split(b".")
    if len(parts) != 3 or len(token) > MOST_BYTES:
        return None, ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None, ""
    bound = _mapping(_mapping(claims).get("kubernetes.io"))
    pod = _mapping(bound.get("pod"))
    namespace, name, uid = bound.get("namespace"), pod.get("name"), pod.get("uid")
    if not isinstance(namespace, str) or not isinstance(name, str) or not isinstance(uid, str):
        return None, ""
    return WorkloadKey(Namespace(namespace), name), uid


def question(token: bytes) -> Mapping[str, Any]:
    """Return the TokenReview for a token; raise ProofRefused for a text that cannot be a token."""
    try:
        text = token.decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(text) > MOST_BYTES:
        raise ProofRefused(ProofRefusal.UNREADABLE)
    spec = {"token": text, "audiences": [AUDIENCE]}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}


def read_review(answered: Mapping[str, Any]) -> TokenIdentity:
    """Return the identity in an answered TokenReview; raise ProofRefused if it is not a Pod of ours."""
    status = _mapping(answered.get("status"))
    if status.get("authenticated") is not True:
        words = str(status.get("error", ""))[:300]
        raise ProofRefused(ProofRefusal.NOT_AUTHENTICATED, words)
    # An API server without support for audiences returns none, so its answer must not be trusted.
    if AUDIENCE not in _texts(status.get("audiences")):
        raise ProofRefused(ProofRefusal.NOT_AUTHENTICATED, f"the token is not for the audience {AUDIENCE}")
    user = _mapping(status.get("user"))
    username = str(user.get("username", ""))
    namespace, _, account = username.removeprefix(_USER).partition(":")
    if not username.startswith(_USER) or not account:
        raise ProofRefused(
            ProofRefusal.NOT_AUTHENTICATED,
            f"the user of the token, {username[:200]!r}, is not a ServiceAccount",
        )
    extra = _mapping(user.get("extra"))
    pods, uids = (_texts(extra.get(f"{_EXTRA}{name}")) for name in ("pod-name", "pod-uid"))
    # A token from the TokenRequest API without a bound Pod, or a legacy one.
    if len(pods) != 1 or len(uids) != 1:
        raise ProofRefused(ProofRefusal.NO_WORKLOAD, f"the token of {username} is not bound to a Pod")
    node = "".join(_texts(extra.get(f"{_EXTRA}node-name"))[:1])
    return TokenIdentity(
        ServiceIdentity(Namespace(namespace), ServiceAccountName(account)), pods[0], uids[0], node
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
