"""What proxies and the server are known to trust and to show, and who holds the next step back."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from certs.roots.rotation import Fingerprint, Rotation, Stage
from meshwright.mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a proxy that has a certificate in force.

    `mesh` are the roots by which it verifies peers, as it has acknowledged them; `channel` those by which it
    verifies the control plane, as its agent has confirmed them. Each is None where nothing was said of it
    since this server runs. `shown` are the signers of the proxy certificates that it may show from now on,
    `service` who signed the service certificate that it uses, None as above. `seen` is when it was last
    connected, None for never; `issued` is when its newest certificate was.
    """

    proxy: ProxyName
    mesh: frozenset[Fingerprint] | None
    channel: frozenset[Fingerprint] | None
    shown: frozenset[Fingerprint]
    service: Fingerprint | None
    seen: datetime | None
    issued: datetime


class BlockReason(enum.StrEnum):
    """Why somebody holds a step back: proxies, and from SERVER_CERTIFICATE on the server's own parts."""

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
    """A proxy that holds the next step back, and all that is missing, in the order of BlockReason.

    `heard` is when there was a sign of it last: it was connected, or a certificate was issued for it.
    """

    proxy: ProxyName
    why: tuple[BlockReason, ...]
    seen: datetime | None
    heard: datetime


class Part(enum.StrEnum):
    """What is no proxy, and is concerned; OBJECTS are those that declare which roots there are."""

    SERVER = "server"
    WEBHOOK = "webhook"
    PODS = "pods"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class ServerEvidence:
    """What is known of the server's own part.

    `shown` are the signers of what it shows to whoever dials it, `trusted` the roots below which it demands
    certificates. `webhook` are the roots by which the API servers of its cluster verify its webhook, None
    where they ask none, or are told by somebody else; `webhook_error` is why they could not be told. `pods`
    are those by which pods that are yet to join believe it, in whichever namespace, None where we tell none.
    """

    shown: frozenset[Fingerprint]
    trusted: frozenset[Fingerprint]
    webhook: frozenset[Fingerprint] | None = None
    webhook_error: str = ""
    pods: frozenset[Fingerprint] | None = None
    pods_error: str = ""


@dataclass(frozen=True, slots=True)
class BlockingPart:
    """A part of the server that holds the next step back; `said` is what went wrong, if anything did."""

    part: Part
    why: BlockReason
    said: str = ""


def behind(rotation: Rotation, ours: ServerEvidence) -> tuple[BlockingPart, ...]:
    """Return which parts of the server hold the next step back; all but itself can be given up by name.

    The server itself follows in every stage: it shows what the signer has signed, and lets in whom it is to.
    API servers must know the other root before it signs what the webhook shows to them, and pods before
    they join.
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
    """Return who holds the next step back, by name; those that were given up do not."""
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
                # Who never came verifies no peers yet, and is told by whom when he comes.
                BlockReason.MESH_TRUST: known.seen is not None and not _has(known.mesh, rotation.other),
                BlockReason.CHANNEL_TRUST: not _has(known.channel, rotation.other),
            }
        case Stage.REPLACING:
            missing = {
                BlockReason.PROXY_CERTIFICATE: known.shown != {rotation.signer},
                # Who is away since a restart may show the former one to its peers all the while.
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
    """Say whether it may trust the root that is trusted no longer: who never came trusts nobody yet.

    Who was here and has said nothing since a restart may: he did follow to here, and will say so. On the way
    back nobody need ever have followed, and none that has no agent will.
    """
    if roots is None and rotation.aborted:
        return False
    return known.seen is not None and not _follows(rotation, roots)


def _follows(rotation: Rotation, roots: frozenset[Fingerprint] | None) -> bool:
    """Say whether it has taken what is trusted now: nothing is what has taken neither."""
    return _has(roots, rotation.signer) and not _has(roots, rotation.other)


def _has(roots: frozenset[Fingerprint] | None, root: Fingerprint) -> bool:
    return roots is not None and root in roots
