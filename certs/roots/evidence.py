"""Evidence of the roots that proxies and the server trust and show, and the parties that block a step."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from certs.roots.rotation import Fingerprint, Rotation, Stage
from meshwright.mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about one proxy that has a certificate in force.

    - `mesh`: roots by which it verifies peers, as it has acknowledged; None if unknown since the server's
      start.
    - `channel`: roots by which it verifies the control plane, as its agent has confirmed; None as above.
    - `shown`: signers of the proxy certificates that it may show from now on.
    - `service`: signer of the service certificate that it uses; None as above.
    - `seen`: time of its last connection, None for never.
    - `issued`: time at which its newest certificate was issued.
    """

    proxy: ProxyName
    mesh: frozenset[Fingerprint] | None
    channel: frozenset[Fingerprint] | None
    shown: frozenset[Fingerprint]
    service: Fingerprint | None
    seen: datetime | None
    issued: datetime


class BlockReason(enum.StrEnum):
    """Reason why a step must wait: of proxies, and from SERVER_CERTIFICATE on of parts of the server."""

    NEVER_CONNECTED = "never-connected"
    MESH_TRUST = "mesh-trust"
    CHANNEL_TRUST = "channel-trust"
    PROXY_CERTIFICATE = "proxy-certificate"
    SERVICE_CERTIFICATE = "service-certificate"
    SERVER_CERTIFICATE = "server-certificate"
    WEBHOOK_TRUST = "webhook-trust"
    JOINING_TRUST = "joining-trust"
    NOT_DECLARED = "not-declared"


@dataclass(frozen=True, slots=True)
class Holdout:
    """A proxy that blocks the next step, with all reasons in the order of BlockReason.

    `heard` is the last sign of it: a connection, or the issue of a certificate.
    """

    proxy: ProxyName
    why: tuple[BlockReason, ...]
    seen: datetime | None
    heard: datetime


class Part(enum.StrEnum):
    """Party that is not a proxy; OBJECTS are the objects that declare roots."""

    SERVER = "server"
    WEBHOOK = "webhook"
    PODS = "pods"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class ServerEvidence:
    """Evidence about the server's own parts.

    - `shown`: signers of the certificates that it shows; `trusted`: roots of the client certificates it
      accepts.
    - `webhook`: roots by which the API servers verify its webhook; None without a webhook, or if another
      party configures it. `webhook_error` is why they could not be configured.
    - `pods`: roots by which new pods verify the server, in every namespace; None if we do not distribute
      them. `pods_error` is why that failed.
    """

    shown: frozenset[Fingerprint]
    trusted: frozenset[Fingerprint]
    webhook: frozenset[Fingerprint] | None = None
    webhook_error: str = ""
    pods: frozenset[Fingerprint] | None = None
    pods_error: str = ""


@dataclass(frozen=True, slots=True)
class BlockingPart:
    """A part of the server that blocks the next step; `said` is the error, if there was one."""

    part: Part
    why: BlockReason
    said: str = ""


def behind(rotation: Rotation, ours: ServerEvidence) -> tuple[BlockingPart, ...]:
    """Return the parts of the server that block the next step; all but the server itself can be given up.

    The server follows in every stage: it must show certificates of the signer and trust the right roots. The
    API servers must know the other root before it signs the webhook's certificate, and pods before they join.
    """
    found = []
    if ours.shown != {rotation.signer} or ours.trusted != frozenset(rotation.trusted):
        found.append(BlockingPart(Part.SERVER, BlockReason.SERVER_CERTIFICATE))
    if rotation.stage is Stage.TRUSTING:
        believing = (
            (Part.WEBHOOK, BlockReason.WEBHOOK_TRUST, ours.webhook, ours.webhook_error),
            (Part.PODS, BlockReason.JOINING_TRUST, ours.pods, ours.pods_error),
        )
        for part, why, roots, error in believing:
            if part not in rotation.given_up and roots is not None and rotation.other not in roots:
                found.append(BlockingPart(part, why, error))
    return tuple(found)


def holdouts(rotation: Rotation, proxies: Iterable[Evidence]) -> tuple[Holdout, ...]:
    """Return the proxies that block the next step, by name, without those that were given up."""
    found = (
        Holdout(each.proxy, _missing(rotation, each), each.seen, max(each.seen or each.issued, each.issued))
        for each in proxies
    )
    held = (each for each in found if each.why and str(each.proxy) not in rotation.given_up)
    return tuple(sorted(held, key=lambda each: str(each.proxy)))


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

    Without evidence since a restart it may: it followed to this stage, and will report. When a change is
    aborted it need never have followed, and a proxy without an agent cannot report.
    """
    if roots is None and rotation.aborted:
        return False
    return known.seen is not None and not _follows(rotation, roots)


def _follows(rotation: Rotation, roots: frozenset[Fingerprint] | None) -> bool:
    """Return whether it trusts the signing root and not the other one."""
    return _has(roots, rotation.signer) and not _has(roots, rotation.other)


def _has(roots: frozenset[Fingerprint] | None, root: Fingerprint) -> bool:
    return roots is not None and root in roots
