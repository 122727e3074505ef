"""Looks at the connection to a control plane: the credentials, and each step of the connection."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from certs.state.privacy import user_of
from meshwright.agent.certificates import certificate, read, trust_domain
from meshwright.agent.credentials import Credentials, CredentialsError
from meshwright.agent.reach.observations import PresentedCertificate, ReachObservation
from meshwright.agent.reach.place import place, remedy
from meshwright.agent.reach.probing import ReachTarget, listener, observe
from meshwright.agent.reach.reasons import unreached
from meshwright.cli.checking import kernel
from meshwright.cli.checking.judgements import certificates, clock, machine
from meshwright.cli.checking.judgements.certificates import Certificate
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.machine.other_user import send_as
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.layout import CHAIN_FILE


@dataclass(frozen=True, slots=True)
class DialSettings:
    """Paths and addresses on the machine; None: use the value of the agent or its Envoy."""

    credentials: Path
    ads: HostPort | None
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
    way: ReachObservation | str | UnavailableCheck | None,
    ads: HostPort | None,
    *,
    before: bool = False,
) -> Iterator[Check]:
    """Yield the checks of the connection to the control plane: credentials, certificate, clock, and name."""
    if isinstance(files, UnavailableCheck):
        yield Check.unseen("credentials", files)
    else:
        name, error = ("", files) if isinstance(files, str) else (str(files.name), "")
        yield machine.credentials(where.credentials, name, error, before=before)
    shown = _certificate(where.credentials)
    if shown is not None:
        yield certificates.own(shown, datetime.now(UTC))
    ahead = way.clock_ahead if isinstance(way, ReachObservation) else None
    yield clock.beside_control_plane(kernel.clock(), ahead)
    if ads is None:
        do = "give its address with --ads (or MESHWRIGHT_ADS)"
        yield Check.unseen("control plane", UnavailableCheck("its address is not given", do))
        return
    match way:
        case None:
            yield Check.ok(
                "control plane",
                f"a server listens at {ads}; without credentials its identity cannot be verified",
            )
        case UnavailableCheck():
            yield Check.unseen("control plane", way)
        case str():
            yield Check.unseen("control plane", UnavailableCheck(way, "correct the line `credentials` first"))
        case ReachObservation():
            why = unreached(way)
            if why is not None:
                why = replace(why, do=remedy(why, ads, place()))
            yield machine.control_plane(ads, why)
            if shown is not None and way.shown.serial:
                yield machine.workload(shown.owner, why)


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


def way_to(where: DialSettings, ads: HostPort | None, user: int | None) -> ReachObservation | str | None:
    """Connect to the control plane as `user`, whose traffic is exempt from interception rules.

    `user` is None without rules. Without credentials, only the TCP connection is tried, and None means
    success.
    """
    if ads is None:
        return None
    if not where.credentials.exists():
        return asyncio.run(_dialled(ads))
    # In this look's own thread, so that other looks keep their user.
    if user is not None:
        send_as(user)
    try:
        shown = certificate(where.credentials / CHAIN_FILE)
        domain = trust_domain(where.credentials, where.trust_domain)
        return asyncio.run(observe(ReachTarget(ads, where.credentials, shown, domain)))
    except CredentialsError as error:
        return " ".join(str(error).split())


async def _dialled(ads: HostPort) -> ReachObservation | None:
    result, now = await listener(ads), datetime.now(UTC)
    if isinstance(result, HostPort):
        return None
    return ReachObservation(ads, PresentedCertificate("", "", now, now), now, result)
