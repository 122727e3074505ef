"""The checks of the sidecars' inbound ports: every kind of caller that must fail, and one that must not."""

import asyncio
import functools
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from demo import mtls
from demo.apps.control import AppClient
from demo.bookstore import Bookstore
from demo.display.verdicts import Verdict
from demo.topology import (
    BOOKBUYER,
    BOOKSTORE,
    BOOKTHIEF,
    DATABASE,
    MYSQL,
    SERVICE_PORTS,
    STORE_V1,
    WAREHOUSE,
    Place,
)
from meshwright.mesh.service import ServiceKey

REFUSED: Final = "refused by the sidecar"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a place's inbound port: the expected answer (or REFUSED), and whether it is counted."""

    what: str
    place: Place
    expected: str
    counted: int
    run: Callable[[str], str]


class Reach(Protocol):
    """How inbound ports are reached by hand, and with whose certificates."""

    @property
    def programs(self) -> Mapping[str, AppClient]:
        """Return by what each program is asked."""

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return a place's inbound port as a peer reaches it."""

    def service(self, place: Place) -> mtls.Credentials:
        """Return a workload's service certificate."""

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return a certificate with which a sidecar of that place dials the control plane."""

    def do(self, work: Callable[[], str]) -> str:
        """Make an attempt from where peers are."""


@dataclass(frozen=True, slots=True)
class OnOneMachine:
    """The reach of a bookstore whose programs are all on this machine."""

    bookstore: Bookstore

    @property
    def programs(self) -> Mapping[str, AppClient]:
        """Return its programs."""
        return self.bookstore.programs

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return the address that the mode of interception gives the sidecar."""
        address = self.bookstore.interception.addresses.workload(place)
        ca = self.bookstore.state / "sidecars" / place.name / "ca.pem"
        return mtls.Target(str(address), SERVICE_PORTS[service], service.fqdn(), ca)

    def service(self, place: Place) -> mtls.Credentials:
        """Return it from the control plane's own state directory."""
        identity = place.identity
        path = self.bookstore.plane.state / "services" / identity.namespace / identity.service_account
        return mtls.Credentials(path / "certificate.pem", path / "certificate.pem")

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return the sidecar's own."""
        directory: Path = self.bookstore.state / "sidecars" / place.name
        return mtls.Credentials(directory / "proxy.pem", directory / "proxy.key")

    def do(self, work: Callable[[], str]) -> str:
        """Make it from here."""
        return work()


def attempts(reach: Reach) -> tuple[Attempt, ...]:
    """Return the attempts, for a phase in which the buyer may call the store and the thief may call nobody.

    The last one at each port is the positive control of those before it.
    """
    store = reach.target(STORE_V1, BOOKSTORE)
    database = reach.target(DATABASE, MYSQL)
    service, proxy = reach.service, reach.proxy(BOOKBUYER)

    def http(caller: str, credentials: mtls.Credentials | None) -> Callable[[str], str]:
        return lambda token: mtls.tls(store, token, caller, credentials)

    def insert(place: Place) -> Callable[[str], str]:
        return lambda token: mtls.database(database, token, service(place))

    return (
        Attempt("plain HTTP", STORE_V1, REFUSED, 0, lambda token: mtls.plain(store, token)),
        Attempt("TLS without a certificate", STORE_V1, REFUSED, 0, http("nobody", None)),
        Attempt("TLS with a proxy certificate", STORE_V1, REFUSED, 0, http("proxy", proxy)),
        Attempt("TLS as bookthief", STORE_V1, "403", 0, http("bookthief", service(BOOKTHIEF))),
        Attempt("TLS as bookbuyer", STORE_V1, "200", 1, http("bookbuyer", service(BOOKBUYER))),
        Attempt("TLS as bookthief", DATABASE, REFUSED, 0, insert(BOOKTHIEF)),
        Attempt("TLS as bookwarehouse", DATABASE, "greeted, stored", 1, insert(WAREHOUSE)),
    )


async def check(reach: Reach, phase: str) -> list[Verdict]:
    """Make every attempt, one after the other, and judge it by both sides."""
    found = []
    for attempt in attempts(reach):
        token = secrets.token_hex(8)
        answer = await asyncio.to_thread(reach.do, functools.partial(attempt.run, token))
        counted = (await reach.programs[attempt.place.name].status()).tokens[token]
        fits = mtls.is_refused(answer) if attempt.expected == REFUSED else answer == attempt.expected
        what = f"inbound port of {attempt.place.name}: {attempt.what}"
        observed = f"{answer}; server counted {counted}"
        found.append(Verdict(phase, what, attempt.expected, observed, fits and counted == attempt.counted))
    return found
