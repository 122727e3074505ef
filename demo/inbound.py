"""The checks of the sidecars' inbound ports: every kind of caller that must fail, and one that must not."""

import asyncio
import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo import mtls
from demo.bookstore import Bookstore
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
from demo.verdicts import Verdict
from mesh.service import ServiceKey

REFUSED: Final = "refused by the sidecar"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a place's inbound port: the expected answer (or REFUSED), and whether it is counted."""

    what: str
    place: Place
    expected: str
    counted: int
    run: Callable[[str], str]


def target(bookstore: Bookstore, place: Place, service: ServiceKey) -> mtls.Target:
    """Return a place's inbound port as a peer reaches it."""
    address = bookstore.interception.addresses.workload(place)
    ca = bookstore.state / "sidecars" / place.name / "ca.pem"
    return mtls.Target(str(address), SERVICE_PORTS[service], service.fqdn(), ca)


def service_certificate(bookstore: Bookstore, place: Place) -> mtls.Credentials:
    """Return a workload's service certificate, from the control plane's own state directory."""
    identity = place.identity
    path = bookstore.plane.state / "services" / identity.namespace / identity.service_account
    return mtls.Credentials(path / "certificate.pem", path / "certificate.pem")


def proxy_certificate(bookstore: Bookstore, place: Place) -> mtls.Credentials:
    """Return the certificate with which a place's sidecar dials the control plane."""
    directory: Path = bookstore.state / "sidecars" / place.name
    return mtls.Credentials(directory / "proxy.pem", directory / "proxy.key")


def attempts(bookstore: Bookstore) -> tuple[Attempt, ...]:
    """Return the attempts, for a phase in which the buyer may call the store and the thief may call nobody.

    The last one at each port is the positive control of those before it.
    """
    store = target(bookstore, STORE_V1, BOOKSTORE)
    database = target(bookstore, DATABASE, MYSQL)
    service = functools.partial(service_certificate, bookstore)
    proxy = proxy_certificate(bookstore, BOOKBUYER)

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


async def check(bookstore: Bookstore, phase: str) -> list[Verdict]:
    """Make every attempt, one after the other, and judge it by both sides."""
    found = []
    for attempt in attempts(bookstore):
        token = secrets.token_hex(8)
        answer = await asyncio.to_thread(attempt.run, token)
        counted = (await bookstore.programs[attempt.place.name].status()).tokens[token]
        fits = mtls.is_refused(answer) if attempt.expected == REFUSED else answer == attempt.expected
        what = f"inbound port of {attempt.place.name}: {attempt.what}"
        observed = f"{answer}; server counted {counted}"
        found.append(Verdict(phase, what, attempt.expected, observed, fits and counted == attempt.counted))
    return found
