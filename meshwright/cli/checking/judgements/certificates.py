"""Judgements of the remaining life of certificates: CA, services, proxies, and a machine's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.renewal import CA_ENDS_SOON, Validity, alarm_at, renewed_by
from meshwright.agent.reach.times import length, stamp
from meshwright.cli.checking.judgements.check import Check, counted, listed

_LATE: Final = timedelta(minutes=10)
"""A renewal by the server is overdue after this delay, because the server tries again within minutes."""
_ANEW: Final = (
    "if an agent renews the certificate, see the agent's log for the reason; otherwise issue a new "
    "one (`meshwright certs issue-proxy`) and put it into the credentials directory"
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Owner and validity of a certificate."""

    owner: str
    not_before: datetime
    not_after: datetime


def authority(validity: Validity, now: datetime) -> Check:
    """Judge the CA of a state directory."""
    name, until = "CA", stamp(validity.not_after)
    if now < validity.not_before:
        text = (
            f"the CA certificate is valid from {stamp(validity.not_before)}, and the clock shows {stamp(now)}"
        )
        return Check.failed(name, text, "set the clock, or install the right CA")
    if now > validity.not_after:
        do = (
            "create a new CA, and let machines join again with tokens (docs/operate/certificates.md, "
            "Changing the root)"
        )
        return Check.failed(
            name,
            f"the CA certificate expired at {until}, so proxies reject all certificates that this CA signs",
            do,
        )
    left = f"valid until {until}, {length(validity.not_after - now)} left"
    if validity.not_after - now < CA_ENDS_SOON:
        do = (
            "rotate the root while it is valid (`meshwright certs rotate-root`): certificates expire "
            "with their CA"
        )
        return Check.warning(name, left, do)
    return Check.ok(name, left)


def judge_files_of_other(result: Validity | None, now: datetime, place: str) -> Check:
    """Judge a CA in files at `place`, renewed by another program; `result` is None without files."""
    name, do = (
        "CA",
        f"put a valid CA into {place} with the tool that renews the CA; the server then uses it at once",
    )
    if result is None:
        return Check.failed(name, f"the CA certificate is missing in {place}", do)
    until = stamp(result.not_after)
    if now < result.not_before:
        return Check.failed(
            name, f"the CA certificate in {place} is valid from {stamp(result.not_before)}", "set the clock"
        )
    if now > result.not_after:
        return Check.failed(name, f"the CA certificate in {place} expired at {until}", do)
    left = f"external CA in {place}, valid until {until}, {length(result.not_after - now)} left"
    return Check.ok(name, left)


def services(certificates: Iterable[Certificate], now: datetime) -> Check:
    """Judge the service certificates in force, which the server renews after about half of their life."""
    name, known = "service certificates", sorted(certificates, key=lambda certificate: certificate.not_after)
    over = [certificate.owner for certificate in known if now > certificate.not_after]
    if over:
        return Check.failed(
            name, f"expired: {listed(over)}", "see the server's log for the reason (`certificate-not-issued`)"
        )
    # Expired certificates are an error already; these are still valid.
    late = [certificate.owner for certificate in known if now > renewed_by(certificate) + _LATE]
    if late:
        text = f"{counted(len(late), 'renewal')} overdue: {listed(late)}"
        return Check.warning(name, text, "see the server's log for the reason (`certificate-not-issued`)")
    if not known:
        return Check.ok(name, "the first one is issued when a proxy connects")
    text = (
        f"{len(known)} in force; the next one expires at {stamp(known[0].not_after)}, and the server "
        "renews it before then"
    )
    return Check.ok(name, text)


def proxies(certificates: Iterable[Certificate], now: datetime) -> Check:
    """Judge the newest certificate of each proxy, usually renewed by the proxy's agent."""
    name, known = (
        "proxy certificates",
        sorted(certificates, key=lambda certificate: (certificate.not_after, certificate.owner)),
    )
    over = [f"{item.owner} (at {stamp(item.not_after)})" for item in known if now > item.not_after]
    if over:
        return Check.failed(name, f"expired: {listed(over)}", _ANEW)
    soon = [f"{each.owner} ({length(each.not_after - now)} left)" for each in known if now >= alarm_at(each)]
    if soon:
        text = f"{counted(len(soon), 'certificate')} in the last quarter of its life: {listed(soon)}"
        return Check.warning(name, text, _ANEW)
    if not known:
        return Check.ok(name, "the first one is still to be issued")
    text = f"{len(known)} valid, the first expires at {stamp(known[0].not_after)}"
    return Check.ok(name, text)


def own(result: Certificate, now: datetime) -> Check:
    """Judge the validity of the proxy certificate on this machine, by the local clock."""
    name = "certificate"
    if now < result.not_before:
        early = length(result.not_before - now)
        text = (
            f"the certificate of {result.owner} is valid from {stamp(result.not_before)}, which is "
            f"in {early} by the local clock"
        )
        return Check.failed(
            name, text, "set the local clock, or the clock of the machine that issued the certificate"
        )
    if now > result.not_after:
        ago = length(now - result.not_after)
        text = (
            f"the certificate of {result.owner} expired at {stamp(result.not_after)}, {ago} ago by the "
            "local clock"
        )
        return Check.failed(name, text, f"{_ANEW}; if the local clock is wrong, set it")
    left = length(result.not_after - now)
    text = f"the certificate of {result.owner} is valid until {stamp(result.not_after)}, {left} left"
    return Check.warning(name, text, _ANEW) if now >= alarm_at(result) else Check.ok(name, text)
