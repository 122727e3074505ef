"""What proxies are known to trust and to show, and who of them holds the next step of a change back."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from certs.roots.rotation import Fingerprint, Rotation, Stage
from mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a proxy that has a certificate in force.

    `mesh` are the roots by which it verifies peers, as it has acknowledged them; `channel` those by which it
    verifies the control plane, as its agent has confirmed them. Each is None where nothing was said of it
    since this server runs. `shown` are the signers of its proxy certificates in force, `service` who signed
    the service certificate that it uses, None as above. `seen` is when it was last connected, None for never;
    `issued` is when its newest certificate was.
    """

    proxy: ProxyName
    mesh: frozenset[Fingerprint] | None
    channel: frozenset[Fingerprint] | None
    shown: frozenset[Fingerprint]
    service: Fingerprint | None
    seen: datetime | None
    issued: datetime


class Why(enum.StrEnum):
    """Why a proxy holds a step back."""

    NEVER_CONNECTED = "never-connected"
    MESH_TRUST = "mesh-trust"
    CHANNEL_TRUST = "channel-trust"
    PROXY_CERTIFICATE = "proxy-certificate"
    SERVICE_CERTIFICATE = "service-certificate"


@dataclass(frozen=True, slots=True)
class Holdout:
    """A proxy that holds the next step back, and all that is missing, in the order of Why.

    `heard` is when there was a sign of it last: it was connected, or a certificate was issued for it.
    """

    proxy: ProxyName
    why: tuple[Why, ...]
    seen: datetime | None
    heard: datetime


def holdouts(rotation: Rotation, proxies: Iterable[Evidence]) -> tuple[Holdout, ...]:
    """Return who holds the next step back, by name; those that were given up do not."""
    found = (
        Holdout(each.proxy, _missing(rotation, each), each.seen, max(each.seen or each.issued, each.issued))
        for each in proxies
    )
    held = (each for each in found if each.why and str(each.proxy) not in rotation.given_up)
    return tuple(sorted(held, key=lambda each: str(each.proxy)))


def _missing(rotation: Rotation, known: Evidence) -> tuple[Why, ...]:
    match rotation.stage:
        case Stage.TRUSTING:
            missing = {
                # Who never came verifies no peers yet, and is told by whom when he comes.
                Why.MESH_TRUST: known.seen is not None and not _has(known.mesh, rotation.other),
                Why.CHANNEL_TRUST: not _has(known.channel, rotation.other),
            }
        case Stage.REPLACING:
            missing = {
                Why.PROXY_CERTIFICATE: rotation.signer not in known.shown,
                # Who is away since a restart may show the former one to its peers all the while.
                Why.SERVICE_CERTIFICATE: known.seen is not None and known.service != rotation.signer,
            }
        case Stage.RETIRING:
            missing = {Why.MESH_TRUST: known.mesh is not None and not _follows(rotation, known.mesh)}
    never = {Why.NEVER_CONNECTED} if known.seen is None and any(missing.values()) else set()
    return tuple(why for why in Why if why in never or missing.get(why))


def _follows(rotation: Rotation, roots: frozenset[Fingerprint]) -> bool:
    """Say whether it has taken what is trusted now: nothing is what has taken neither."""
    return rotation.signer in roots and rotation.other not in roots


def _has(roots: frozenset[Fingerprint] | None, root: Fingerprint) -> bool:
    return roots is not None and root in roots
