"""Evidence of the roots trusted and shown by proxies and the server, and the parties blocking a step."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from certs.roots.rotation import Fingerprint, Rotation, Stage
from meshwright.mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about one proxy with a certificate in force.

    - `mesh`: roots for verifying peers, as acknowledged by the proxy; None if unknown since the server's
      start.
    - `channel`: roots for verifying the control plane, as confirmed by the agent; None as above.
    - `shown`: signers of the proxy certificates that may be shown from now on.
    - `service`: signer of the service certificate in use; None as above.
    - `seen`: time of the last connection, None for never.
    - `issued`: time of issue of the newest certificate.
    """

    proxy: ProxyName
    mesh: frozenset[Fingerprint] | None
    channel: frozenset[Fingerprint] | None
    shown: frozenset[Fingerprint]
    service: Fingerprint | None
    seen: datetime | None
    issued: datetime


class BlockReason(enum.StrEnum):
    """Reason why a step must wait: of proxies, and from SERVER_CERTIFICATE on of parts of the server.

    The last three are of other servers of the mesh.
    """

    NEVER_CONNECTED = "never-connected"
    MESH_TRUST = "mesh-trust"
    CHANNEL_TRUST = "channel-trust"
    PROXY_CERTIFICATE = "proxy-certificate"
    SERVICE_CERTIFICATE = "service-certificate"
    SERVER_CERTIFICATE = "server-certificate"
    WEBHOOK_TRUST = "webhook-trust"
    JOINING_TRUST = "joining-trust"
    NOT_DECLARED = "not-declared"
    NO_REPORT = "no-report"
    STEP_NOT_TAKEN = "step-not-taken"
    UNKNOWN_CERTIFICATES = "unknown-certificates"


@dataclass(frozen=True, slots=True)
class Holdout:
    """A proxy blocking the next step, with all reasons in the order of BlockReason.

    `last_contact` is the last sign of the proxy: a connection, or the issue of a certificate.
    """

    proxy: ProxyName
    why: tuple[BlockReason, ...]
    seen: datetime | None
    last_contact: datetime


class Part(enum.StrEnum):
    """Party of a root rotation other than a proxy; OBJECTS are the objects declaring roots.

    OTHER_SERVER is another server of the same mesh, named in the detail.
    """

    SERVER = "server"
    OTHER_SERVER = "other-server"
    WEBHOOK = "webhook"
    PODS = "pods"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class ServerEvidence:
    """Evidence about the server's own parts.

    - `shown`: signers of the shown certificates; `trusted`: roots of accepted client certificates.
    - `webhook`: roots for the API servers to verify the webhook; None without a webhook, or with a webhook
      configured by another party. `webhook_error` is the reason for a failed configuration.
    - `pods`: roots for new pods to verify the server, in every namespace; None without a distribution by us.
      `pods_error` is the reason for a failed distribution.
    """

    shown: frozenset[Fingerprint]
    trusted: frozenset[Fingerprint]
    webhook: frozenset[Fingerprint] | None = None
    webhook_error: str = ""
    pods: frozenset[Fingerprint] | None = None
    pods_error: str = ""


@dataclass(frozen=True, slots=True)
class BlockingPart:
    """A part of the server that blocks the next step of a root rotation; `detail` is the error, if any."""

    part: Part
    why: BlockReason
    detail: str = ""


def behind(rotation: Rotation, ours: ServerEvidence) -> tuple[BlockingPart, ...]:
    """Return the parts of the server blocking the next step; all but the server itself can be given up.

    The server follows in every stage: the server must show certificates of the signer and trust the right
    roots. The API servers must know the other root before the webhook's certificate is signed below this
    root, and pods before joining.
    """
    blocking_parts = []
    if ours.shown != {rotation.signer} or ours.trusted != frozenset(rotation.trusted):
        blocking_parts.append(BlockingPart(Part.SERVER, BlockReason.SERVER_CERTIFICATE))
    if rotation.stage is Stage.TRUSTING:
        believing = (
            (Part.WEBHOOK, BlockReason.WEBHOOK_TRUST, ours.webhook, ours.webhook_error),
            (Part.PODS, BlockReason.JOINING_TRUST, ours.pods, ours.pods_error),
        )
        for part, why, roots, error in believing:
            if part not in rotation.given_up and roots is not None and rotation.other not in roots:
                blocking_parts.append(BlockingPart(part, why, error))
    return tuple(blocking_parts)


def holdouts(rotation: Rotation, proxies: Iterable[Evidence]) -> tuple[Holdout, ...]:
    """Return the proxies that block the next step, sorted by name, without the ones given up."""
    result = (
        Holdout(
            proxy.proxy, _missing(rotation, proxy), proxy.seen, max(proxy.seen or proxy.issued, proxy.issued)
        )
        for proxy in proxies
    )
    held = (holdout for holdout in result if holdout.why and str(holdout.proxy) not in rotation.given_up)
    return tuple(sorted(held, key=lambda holdout: str(holdout.proxy)))


def _missing(rotation: Rotation, known: Evidence) -> tuple[BlockReason, ...]:
    match rotation.stage:
        case Stage.TRUSTING:
            missing = {
                # A proxy that never connected verifies no peers yet, and gets current roots when it does.
                BlockReason.MESH_TRUST: known.seen is not None and not _has(known.mesh, rotation.other),
                BlockReason.CHANNEL_TRUST: not _has(known.channel, rotation.other),
            }
        case Stage.REPLACING:
            missing = {
                BlockReason.PROXY_CERTIFICATE: known.shown != {rotation.signer},
                # A proxy that is away since a restart may still show the former one to its peers.
                BlockReason.SERVICE_CERTIFICATE: known.seen is not None and known.service != rotation.signer,
            }
        case Stage.RETIRING:
            missing = {
                BlockReason.MESH_TRUST: _goes_on(rotation, known, known.mesh),
                BlockReason.CHANNEL_TRUST: _goes_on(rotation, known, known.channel),
            }
    never = {BlockReason.NEVER_CONNECTED} if known.seen is None and any(missing.values()) else set()
    return tuple(why for why in BlockReason if why in never or missing.get(why))


def _goes_on(rotation: Rotation, known: Evidence, roots: frozenset[Fingerprint] | None) -> bool:
    """Return whether a proxy may still trust the retiring root; a proxy that never connected does not.

    Without evidence since a restart the answer is True: the proxy followed to this stage, and will report. In
    an aborted change the answer is False: the proxy need never have followed, and a proxy without an agent
    cannot report.
    """
    if roots is None and rotation.aborted:
        return False
    return known.seen is not None and not _follows(rotation, roots)


def _follows(rotation: Rotation, roots: frozenset[Fingerprint] | None) -> bool:
    """Return whether a proxy trusts the signing root and not the other one."""
    return _has(roots, rotation.signer) and not _has(roots, rotation.other)


def _has(roots: frozenset[Fingerprint] | None, root: Fingerprint) -> bool:
    return roots is not None and root in roots
