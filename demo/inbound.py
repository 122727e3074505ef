"""Checks of the sidecars' inbound ports: callers without rights must fail, and allowed callers succeed."""

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
    """An attempt to call an inbound port, with the expected answer (or REFUSED) and server count."""

    what: str
    place: Place
    expected: str
    counted: int
    run: Callable[[str], str]


class Reach(Protocol):
    """Access to the inbound ports of sidecars, and to credentials for the attempts to call them."""

    @property
    def programs(self) -> Mapping[str, AppClient]:
        """Return the clients of the programs' control sockets, by the names of their workloads."""

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return the address of an inbound port, as other workloads reach it."""

    def service(self, place: Place) -> mtls.Credentials:
        """Return the service certificate of a workload."""

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return a proxy certificate of the workload's sidecar, for connections to the control plane."""

    def do(self, work: Callable[[], str]) -> str:
        """Run an attempt in the network of the other workloads."""


@dataclass(frozen=True, slots=True)
class OnOneMachine:
    """Access to a bookstore with all programs on this machine."""

    bookstore: Bookstore

    @property
    def programs(self) -> Mapping[str, AppClient]:
        """Return the clients of the programs' control sockets, by the names of their workloads."""
        return self.bookstore.programs

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return the address of the sidecar's inbound port, which depends on the mode of interception."""
        address = self.bookstore.interception.addresses.workload(place)
        ca = self.bookstore.state / "sidecars" / place.name / "ca.pem"
        return mtls.Target(str(address), SERVICE_PORTS[service], service.fqdn(), ca)

    def service(self, place: Place) -> mtls.Credentials:
        """Return the workload's service certificate, from the state directory of the control plane."""
        identity = place.identity
        path = self.bookstore.plane.state / "services" / identity.namespace / identity.service_account
        return mtls.Credentials(path / "certificate.pem", path / "certificate.pem")

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return the proxy certificate of the workload's own sidecar."""
        directory: Path = self.bookstore.state / "sidecars" / place.name
        return mtls.Credentials(directory / "proxy.pem", directory / "proxy.key")

    def do(self, work: Callable[[], str]) -> str:
        """Run the attempt in this process."""
        return work()


def attempts(reach: Reach) -> tuple[Attempt, ...]:
    """Return the attempts, for a phase that allows bookbuyer to call bookstore, and nothing to bookthief.

    The last attempt at each port is the positive control of the attempts before.
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
    """Make the attempts one after the other; judge each by the answer and by the server's count."""
    verdicts = []
    for attempt in attempts(reach):
        token = secrets.token_hex(8)
        answer = await asyncio.to_thread(reach.do, functools.partial(attempt.run, token))
        # The count shows requests that reached the program although the client saw an error.
        counted = (await reach.programs[attempt.place.name].status()).tokens[token]
        fits = mtls.is_refused(answer) if attempt.expected == REFUSED else answer == attempt.expected
        what = f"inbound port of {attempt.place.name}: {attempt.what}"
        observed = f"{answer}; the server counted {counted}"
        verdicts.append(Verdict(phase, what, attempt.expected, observed, fits and counted == attempt.counted))
    return verdicts
