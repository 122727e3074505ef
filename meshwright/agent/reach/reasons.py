"""Reasons for a missing control plane: a closed set, each with a sentence and a remedy. Pure."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from meshwright.agent.reach.observations import (
    ClosedAfterHandshake,
    MisnamedServer,
    NoAnswer,
    NoRoute,
    OtherProtocol,
    PlaintextServer,
    PortClosed,
    PresentedCertificate,
    ReachObservation,
    ServerAnswer,
    ServerNotValid,
    UnresolvedName,
    UntrustedServer,
)
from meshwright.agent.reach.times import length, stamp

_SAID_CHARACTERS: Final = 40
_NAME_CHARACTERS: Final = 100


class Reason(enum.StrEnum):
    """Why a proxy does not reach the control plane; stable, because logs, JSON and programs use it."""

    NAME_NOT_FOUND = "name-not-found"
    PORT_CLOSED = "port-closed"
    NO_ROUTE = "no-route"
    NO_ANSWER = "no-answer"
    ANOTHER_SERVICE = "another-service"
    NO_HANDSHAKE = "no-handshake"
    SERVER_OF_ANOTHER_CA = "server-of-another-ca"
    SERVER_OF_ANOTHER_NAME = "server-of-another-name"
    SERVER_EXPIRED = "server-expired"
    SERVER_NOT_YET_VALID = "server-not-yet-valid"
    EXPIRED = "certificate-expired"
    NOT_YET_VALID = "certificate-not-yet-valid"
    NOT_ACCEPTED = "certificate-not-accepted"
    REVOKED = "certificate-revoked"
    NOT_ISSUED = "certificate-unknown"
    UNCLAIMED = "certificate-unclaimed-too-long"
    OTHER_WORKLOAD = "certificate-of-another-service"
    REFUSED = "refused"
    WORKLOAD_UNKNOWN = "workload-unknown"
    NOT_TRANSLATED = "translation-failed"
    NOTHING_TO_SERVE = "nothing-to-serve"
    BUSY = "busy"
    NOT_SERVING = "not-serving"


@dataclass(frozen=True, slots=True)
class UnreachableReason:
    """The reason for a missing control plane, as a word and as a clause, with the remedy."""

    reason: Reason
    clause: str
    do: str

    def __str__(self) -> str:
        return f"control plane not connected: {self.clause}; {self.do}"


def unreached(seen: ReachObservation) -> UnreachableReason | None:
    """Return the reason for which a sidecar does not reach the control plane; None if it would be served."""
    at = str(seen.control_plane)
    match seen.way:
        case UnresolvedName(said):
            return UnreachableReason(
                Reason.NAME_NOT_FOUND,
                f"the name {seen.control_plane.host} cannot be resolved ({said})",
                f"check --ads and the resolver of this machine: `getent hosts {seen.control_plane.host}`",
            )
        case PortClosed(address):
            return UnreachableReason(
                Reason.PORT_CLOSED,
                f"no server listens at {at}{_at(address, at)}",
                "start `meshwright serve` there, or correct its --ads-address or --ads here",
            )
        case NoRoute(address, said):
            return UnreachableReason(
                Reason.NO_ROUTE,
                f"there is no route to {at}{_at(address, at)} ({said})",
                f"check the routes and firewalls from this machine to {address}",
            )
        case NoAnswer(address, seconds):
            return UnreachableReason(
                Reason.NO_ANSWER,
                f"no answer from {at}{_at(address, at)} within {seconds:g} s",
                "the machine is down, or a firewall drops packets to this port; open the "
                "port, or correct --ads",
            )
        case PlaintextServer(said, closed):
            return _not_tls(at, said, closed=closed)
        case UntrustedServer() | MisnamedServer() | ServerNotValid() as way:
            return _server(at, way, seen.now)
        case ClosedAfterHandshake(said):
            return _own(seen.shown, seen.now) or UnreachableReason(
                Reason.NOT_ACCEPTED,
                f"{at} closed the connection after it received {_named(seen.shown)}{_words(said)}",
                "see the reason in the log of the server (`handshakes failed`): the server "
                f"has another CA than ca.pem, or its clock is not within {_span(seen.shown)}",
            )
        case OtherProtocol(said):
            return UnreachableReason(
                Reason.ANOTHER_SERVICE,
                f"{at} is a server of this mesh, but not a control plane ({said})",
                "check the port in --ads; `meshwright serve` logs the address for proxies when it starts",
            )
        case ServerAnswer() as answer:
            return _answer(at, answer, seen.shown)


def _not_tls(at: str, received: bytes, *, closed: bool) -> UnreachableReason:
    if received:
        kind = "an HTTP server" if received.startswith(b"HTTP/") else "another service"
        text = received[:_SAID_CHARACTERS].decode("ascii", "replace")
        return UnreachableReason(
            Reason.ANOTHER_SERVICE,
            f"{kind} is at {at}, which does not use TLS; it sends {text!r}",
            "check the port in --ads; `meshwright serve` logs the address for proxies when it starts",
        )
    how = "closes them" if closed else "sends nothing"
    return UnreachableReason(
        Reason.NO_HANDSHAKE,
        f"the server at {at} accepts connections but {how} instead of a TLS handshake",
        "it is another service or an overloaded control plane; check the port in --ads "
        "and the log of the server",
    )


def _server(
    at: str, way: UntrustedServer | MisnamedServer | ServerNotValid, now: datetime
) -> UnreachableReason:
    """Return the fault of the server's certificate."""
    match way:
        case UntrustedServer(names, said):
            return UnreachableReason(
                Reason.SERVER_OF_ANOTHER_CA,
                f"{at} presents a certificate for {_listed(names)} that was not issued by a CA in "
                f"ca.pem{_words(said)}",
                "it is the control plane of another mesh, another service, or the "
                "control plane has a new CA; correct --ads, enrol this machine again "
                "with a new join token, or issue a new certificate for this proxy "
                "(`meshwright certs issue-proxy`)",
            )
        case MisnamedServer(names, expected):
            return UnreachableReason(
                Reason.SERVER_OF_ANOTHER_NAME,
                f"{at} presents a certificate for {_listed(names)}, not for {expected}",
                "it is another service of this mesh; check the port in --ads",
            )
        case ServerNotValid(not_before, not_after) if now < not_before:
            return UnreachableReason(
                Reason.SERVER_NOT_YET_VALID,
                f"the certificate of {at} is valid from {stamp(not_before)}, but the "
                f"clock of this machine shows {stamp(now)}",
                f"the clock of this machine is behind by {length(not_before - now)} or more; set it",
            )
        case ServerNotValid(_, not_after):
            return UnreachableReason(
                Reason.SERVER_EXPIRED,
                f"the certificate of {at} expired at {stamp(not_after)}, and the clock of "
                f"this machine shows {stamp(now)}",
                f"the clock of this machine is ahead by {length(now - not_after)} or more "
                "(set it), or the server has not renewed its certificate (see its log)",
            )


def _own(shown: PresentedCertificate, now: datetime) -> UnreachableReason | None:
    """Return the fault of our own certificate by the local clock."""
    if now > shown.not_after:
        return UnreachableReason(
            Reason.EXPIRED,
            f"{_named(shown)} expired at {stamp(shown.not_after)}, "
            f"{length(now - shown.not_after)} ago by the clock of this machine",
            "issue a new one (`meshwright certs issue-proxy`) and put it into the "
            "credentials directory; if the clock of this machine is wrong, set it",
        )
    if now < shown.not_before:
        return UnreachableReason(
            Reason.NOT_YET_VALID,
            f"{_named(shown)} is valid from {stamp(shown.not_before)}, in "
            f"{length(shown.not_before - now)} by the clock of this machine",
            f"the clock of this machine is behind by {length(shown.not_before - now)} or "
            "more, or the clock of the machine that issued the certificate is ahead; set "
            "the wrong clock",
        )
    return None


def _answer(at: str, answer: ServerAnswer, shown: PresentedCertificate) -> UnreachableReason | None:
    match answer.status, answer.reason:
        case "OK", _:
            return None
        case "NOT_FOUND", _:  # a server from before it told of discovery's health
            return None
        case _, "workload-unknown":
            return UnreachableReason(
                Reason.WORKLOAD_UNKNOWN,
                f"{at} has no workload for {shown.name}, and serves this proxy as soon as the "
                "workload exists",
                f"add a Workload with the uuid {shown.name.partition('.')[0]} to the "
                "manifests of the control plane",
            )
        case _, "translation-failed":
            return UnreachableReason(
                Reason.NOT_TRANSLATED,
                f"{at} could not compute a configuration for {shown.name}, and does not have an older one",
                "see the error in the log of the server (`group failed`) or with `meshwright proxy show`",
            )
        case "UNAVAILABLE", reason if reason:
            return UnreachableReason(
                Reason.NOTHING_TO_SERVE,
                f"{at} has no configuration for {shown.name} yet ({reason})",
                "see the reason with `meshwright proxies` or in the log of the server",
            )
        case "PERMISSION_DENIED", reason:
            return _refused(at, reason, shown)
        case "RESOURCE_EXHAUSTED", _:
            return UnreachableReason(
                Reason.BUSY,
                f"{at} limits the streams of {shown.name}{_words(answer.message)}",
                "another program may use the same certificate; check with `meshwright proxies`",
            )
        case "UNIMPLEMENTED", _:
            return UnreachableReason(
                Reason.ANOTHER_SERVICE,
                f"{at} is a gRPC server of this mesh, but not a control plane{_words(answer.message)}",
                "check the port in --ads; `meshwright serve` logs the address for proxies when it starts",
            )
        case status, _:
            return UnreachableReason(
                Reason.NOT_SERVING,
                f"{at} answers {status}{_words(answer.message)}",
                "check the log of the server and its /healthz/ready",
            )


def _refused(at: str, reason: str, shown: PresentedCertificate) -> UnreachableReason:
    """Return the reason for a refusal by the control plane, from the word in the answer."""
    anew = "issue a new one (`meshwright certs issue-proxy`) and put it into the credentials directory"
    named = _named(shown)
    match reason:
        case "revoked":
            return UnreachableReason(Reason.REVOKED, f"{named} was revoked", f"if that was a mistake, {anew}")
        case "not_issued":
            return UnreachableReason(
                Reason.NOT_ISSUED,
                f"{at} does not know {named}, because it is not in the ledger of the server",
                f"it was issued with another state directory, or the ledger was lost; {anew}",
            )
        case "unclaimed_too_long":
            return UnreachableReason(
                Reason.UNCLAIMED, f"{named} was not used for the first time before its deadline", anew
            )
        case "other_workload":
            return UnreachableReason(
                Reason.OTHER_WORKLOAD,
                f"{named} is for {shown.name}, but the workload with this uuid belongs to another service",
                "issue a certificate with --service and --namespace of the workload's "
                "primary service (the log of the server names it)",
            )
        case "expired":
            return UnreachableReason(Reason.EXPIRED, f"{named} has expired by the clock of {at}", anew)
        case "not_yet_valid":
            return UnreachableReason(
                Reason.NOT_YET_VALID,
                f"{named} is not valid yet by the clock of {at}",
                "the clock of the server is behind, or was ahead when the certificate was issued; set it",
            )
        case _:
            return UnreachableReason(
                Reason.REFUSED,
                f"{at} refuses {named}{_words(reason)}",
                "see the log of the server (`client refused`)",
            )


def _named(shown: PresentedCertificate) -> str:
    return f"this proxy's certificate {shown.serial}"


def _at(address: str, at: str) -> str:
    return "" if at == address else f", which is {address},"


def _words(message: str) -> str:
    return f" ({message})" if message else ""


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(_shown, names[:4])) or "no name"


def _shown(name: str) -> str:
    """Return a name from outside in a form that is safe for a terminal and fits a line."""
    short = name[:_NAME_CHARACTERS]
    return short if short.isprintable() else ascii(short)


def _span(shown: PresentedCertificate) -> str:
    return f"{stamp(shown.not_before)} to {stamp(shown.not_after)}"
