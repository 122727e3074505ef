"""Looks at the connection to a control plane: the credentials, and each step of the connection."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.state.privacy import user_of
from meshwright.agent.certificates import certificate, read, trust_domain
from meshwright.agent.credentials import Credentials, CredentialsError
from meshwright.agent.reach.observations import PresentedCertificate, ReachObservation
from meshwright.agent.reach.place import place, remedy
from meshwright.agent.reach.probing import ReachTarget, listener, observe
from meshwright.agent.reach.reasons import UnreachableReason, unreached
from meshwright.cli.checking import kernel
from meshwright.cli.checking.judgements import certificates
from meshwright.cli.checking.judgements.certificates import Certificate
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.judgements.environment import clock, machine
from meshwright.cli.checking.machine.other_user import send_as
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.layout import CHAIN_FILE


@dataclass(frozen=True, slots=True)
class DialSettings:
    """Paths and addresses on the machine; None, or no `ads`: use the value of the agent or its Envoy."""

    credentials: Path
    ads: tuple[HostPort, ...]
    run: Path
    envoy: str | None
    admin: HostPort | Path
    status: HostPort
    applications: tuple[HostPort, ...]
    hosts: Path
    cluster_domain: str
    shared: bool
    uid: int
    trust_domain: TrustDomain | None = None


def dials_in(
    where: DialSettings,
    files: Credentials | str | UnavailableCheck,
    ways: tuple[ReachObservation | None, ...] | str | UnavailableCheck,
    ads: tuple[HostPort, ...],
    *,
    before: bool = False,
) -> Iterator[Check]:
    """Yield the checks of the connection to the control plane: credentials, certificate, clock, and name.

    `ways` has the observation of each server, None for a server that listens if there are no credentials.
    """
    if isinstance(files, UnavailableCheck):
        yield Check.unseen("credentials", files)
    else:
        name, error = ("", files) if isinstance(files, str) else (str(files.name), "")
        yield machine.credentials(where.credentials, name, error, before=before)
    shown = _certificate(where.credentials)
    if shown is not None:
        yield certificates.own(shown, datetime.now(UTC))
    yield clock.beside_control_plane(kernel.clock(), _clock_ahead(ways))
    if not ads:
        do = "give its address with --ads (or MESHWRIGHT_ADS)"
        yield Check.unseen("control plane", UnavailableCheck("its address is not given", do))
        return
    match ways:
        case UnavailableCheck():
            yield Check.unseen("control plane", ways)
        case str():
            yield Check.unseen(
                "control plane", UnavailableCheck(ways, "correct the line `credentials` first")
            )
        case _:
            yield from _server_checks(ways, ads, shown)


def _server_checks(
    ways: tuple[ReachObservation | None, ...], ads: tuple[HostPort, ...], shown: Certificate | None
) -> Iterator[Check]:
    """Yield a check of each server, and one of the workload by the first server that knows about it."""
    reasons = list[UnreachableReason | None]()
    for at, way in zip(ads, ways, strict=True):
        name = "control plane" if len(ads) == 1 else f"control plane {at}"
        if way is None:
            yield Check.ok(
                name,
                f"a server listens at {at}; without credentials its identity cannot be verified",
            )
            continue
        why = unreached(way)
        if why is not None:
            why = replace(why, do=remedy(why, at, place()))
        yield machine.control_plane(name, at, why)
        if way.shown.serial:
            reasons.append(why)
    if shown is not None and reasons:
        yield machine.workload(shown.owner, min(reasons, key=machine.knows_no_workload))


def _clock_ahead(ways: tuple[ReachObservation | None, ...] | str | UnavailableCheck) -> timedelta | None:
    """Return how far the local clock is ahead of the clock of the first server that has answered."""
    if not isinstance(ways, tuple):
        return None
    ahead = (way.clock_ahead for way in ways if way is not None)
    return next((difference for difference in ahead if difference is not None), None)


def files_of(where: DialSettings) -> Credentials | str:
    """Return the proxy's credentials, or the reason why their owner cannot use them."""
    try:
        user = user_of(where.credentials) if where.credentials.exists() else None
        return read(where.credentials, shared=where.shared, user=user, configured=where.trust_domain)
    except (CredentialsError, OSError) as error:
        return " ".join(str(error).split())


def _certificate(directory: Path) -> Certificate | None:
    with suppress(CredentialsError):
        peer_certificate = certificate(directory / CHAIN_FILE)
        return Certificate(
            peer_certificate.common_name, peer_certificate.not_before, peer_certificate.not_after
        )
    return None


def ways_to(
    where: DialSettings, ads: tuple[HostPort, ...], user: int | None
) -> tuple[ReachObservation | None, ...] | str:
    """Connect to each server of the control plane as `user`, whose traffic is exempt from interception rules.

    `user` is None without rules. Without credentials, only the TCP connection is tried, and None means
    success.
    """
    if not ads:
        return ()
    if not where.credentials.exists():
        return asyncio.run(_together(_dialled(at) for at in ads))
    # In this look's own thread, so that other looks keep their user.
    if user is not None:
        send_as(user)
    try:
        shown = certificate(where.credentials / CHAIN_FILE)
        domain = trust_domain(where.credentials, where.trust_domain)
        return asyncio.run(
            _together(observe(ReachTarget(at, where.credentials, shown, domain)) for at in ads)
        )
    except CredentialsError as error:
        return " ".join(str(error).split())


async def _together(
    observing: Iterable[Coroutine[object, object, ReachObservation | None]],
) -> tuple[ReachObservation | None, ...]:
    return tuple(await asyncio.gather(*observing))


async def _dialled(ads: HostPort) -> ReachObservation | None:
    result, now = await listener(ads), datetime.now(UTC)
    if isinstance(result, HostPort):
        return None
    return ReachObservation(ads, PresentedCertificate("", "", now, now), now, result)
