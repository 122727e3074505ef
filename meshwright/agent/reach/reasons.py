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
    """The reason; stable, because logs, JSON and programs use it."""

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
    """The reason as a word and as a clause, and the remedy."""

    reason: Reason
    said: str
    do: str

    def __str__(self) -> str:
        return f"no control plane: {self.said}; {self.do}"


def unreached(seen: ReachObservation) -> UnreachableReason | None:
    """Return the reason for which a sidecar does not reach its control plane; None if it would be served."""
    at = str(seen.control_plane)
    match seen.way:
        case UnresolvedName(said):
            return UnreachableReason(
                Reason.NAME_NOT_FOUND,
                f"the name {seen.control_plane.host} leads to no address ({said})",
                f"look at --ads, and at this machine's resolver: getent hosts {seen.control_plane.host}",
            )
        case PortClosed(address):
            return UnreachableReason(
                Reason.PORT_CLOSED,
                f"nobody listens at {at}{_at(address, at)}",
                "start `meshwright serve` there, or look at its --ads-address and at --ads here",
            )
        case NoRoute(address, said):
            return UnreachableReason(
                Reason.NO_ROUTE,
                f"there is no way to {at}{_at(address, at)} ({said})",
                f"look at the routes and firewalls from here to {address}",
            )
        case NoAnswer(address, seconds):
            return UnreachableReason(
                Reason.NO_ANSWER,
                f"nothing came back from {at}{_at(address, at)} within {seconds:g} s, neither yes nor no",
                "its machine is down, or a firewall drops what is sent to that port: open it, or mend --ads",
            )
        case PlaintextServer(said, closed):
            return _not_tls(at, said, closed=closed)
        case UntrustedServer() | MisnamedServer() | ServerNotValid() as way:
            return _server(at, way, seen.now)
        case ClosedAfterHandshake(said):
            return _own(seen.shown, seen.now) or UnreachableReason(
                Reason.NOT_ACCEPTED,
                f"{at} ended the connection when it was shown {_named(seen.shown)}{_words(said)}",
                "its log has the reason (`handshake failed`): it has another CA than ca.pem says, "
                f"or its clock is not within {_span(seen.shown)}",
            )
        case OtherProtocol(said):
            return UnreachableReason(
                Reason.ANOTHER_SERVICE,
                f"a server of this mesh is at {at}, and is no control plane ({said})",
                "look at the port in --ads: `meshwright serve` says at its start where it serves proxies",
            )
        case ServerAnswer() as answer:
            return _answer(at, answer, seen.shown)


def _not_tls(at: str, said: bytes, *, closed: bool) -> UnreachableReason:
    if said:
        kind = "an HTTP server" if said.startswith(b"HTTP/") else "another service"
        text = said[:_SAID_CHARACTERS].decode("ascii", "replace")
        return UnreachableReason(
            Reason.ANOTHER_SERVICE,
            f"{kind} is at {at}: it does not speak TLS, it says {text!r}",
            "look at the port in --ads: `meshwright serve` says at its start where it serves proxies",
        )
    how = "ends each connection" if closed else "answers nothing"
    return UnreachableReason(
        Reason.NO_HANDSHAKE,
        f"something at {at} takes connections and {how} instead of a TLS handshake",
        "it is another service, or a control plane that has too much to do: look at the port, and at its log",
    )


def _server(
    at: str, way: UntrustedServer | MisnamedServer | ServerNotValid, now: datetime
) -> UnreachableReason:
    """Return the fault of the server's certificate."""
    match way:
        case UntrustedServer(names, said):
            return UnreachableReason(
                Reason.SERVER_OF_ANOTHER_CA,
                f"{at} shows a certificate for {_listed(names)} that no authority in ca.pem has issued"
                f"{_words(said)}",
                "it is another mesh's control plane or another service, or its CA was made anew: "
                "mend --ads, have the machine join again by another token, or issue this proxy's certificate "
                "anew (`meshwright certs issue-proxy`)",
            )
        case MisnamedServer(names, expected):
            return UnreachableReason(
                Reason.SERVER_OF_ANOTHER_NAME,
                f"{at} shows a certificate for {_listed(names)}, not for {expected}",
                "it is another service of this mesh: look at the port in --ads",
            )
        case ServerNotValid(not_before, not_after) if now < not_before:
            return UnreachableReason(
                Reason.SERVER_NOT_YET_VALID,
                f"the certificate of {at} is valid from {stamp(not_before)}, and here it is {stamp(now)}",
                f"the clock here is behind by {length(not_before - now)} or more: set it",
            )
        case ServerNotValid(_, not_after):
            return UnreachableReason(
                Reason.SERVER_EXPIRED,
                f"the certificate of {at} expired at {stamp(not_after)}, and here it is {stamp(now)}",
                f"the clock here is ahead by {length(now - not_after)} or more: set it; "
                "or that server has not renewed its certificate: look at its log",
            )


def _own(shown: PresentedCertificate, now: datetime) -> UnreachableReason | None:
    """Return the fault of our own certificate by the local clock."""
    if now > shown.not_after:
        return UnreachableReason(
            Reason.EXPIRED,
            f"{_named(shown)} expired at {stamp(shown.not_after)}, {length(now - shown.not_after)} ago "
            "by the clock here",
            "issue it anew (`meshwright certs issue-proxy`) and put it into the credentials' directory; "
            "if the clock here is wrong, set it",
        )
    if now < shown.not_before:
        return UnreachableReason(
            Reason.NOT_YET_VALID,
            f"{_named(shown)} is valid from {stamp(shown.not_before)}, "
            f"in {length(shown.not_before - now)} by the clock here",
            f"the clock here is behind by {length(shown.not_before - now)} or more, or that of the machine "
            "that issued it is ahead: set them",
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
                f"{at} knows no workload of {shown.name}, and serves nothing until it does",
                f"declare a Workload with the uuid {shown.name.partition('.')[0]} in what it reads",
            )
        case _, "translation-failed":
            return UnreachableReason(
                Reason.NOT_TRANSLATED,
                f"{at} failed to make a configuration for {shown.name}, and has no older one",
                "the server's log (`group failed`) and `meshwright proxy show` have its error",
            )
        case "UNAVAILABLE", reason if reason:
            return UnreachableReason(
                Reason.NOTHING_TO_SERVE,
                f"{at} has nothing to serve to {shown.name} ({reason})",
                "`meshwright proxies`, and the server's log, say why",
            )
        case "PERMISSION_DENIED", reason:
            return _refused(at, reason, shown)
        case "RESOURCE_EXHAUSTED", _:
            return UnreachableReason(
                Reason.BUSY,
                f"{at} turns {shown.name} away{_words(answer.said)}",
                "another program may use the same certificate: look at `meshwright proxies`",
            )
        case "UNIMPLEMENTED", _:
            return UnreachableReason(
                Reason.ANOTHER_SERVICE,
                f"a gRPC server of this mesh is at {at}, and is no control plane{_words(answer.said)}",
                "look at the port in --ads: `meshwright serve` says at its start where it serves proxies",
            )
        case status, _:
            return UnreachableReason(
                Reason.NOT_SERVING,
                f"{at} answers {status}{_words(answer.said)}",
                "look at the server's log and its /healthz/ready",
            )


def _refused(at: str, reason: str, shown: PresentedCertificate) -> UnreachableReason:
    """Return the meaning of a refusal, by its word."""
    anew = "issue it anew (`meshwright certs issue-proxy`) and put it into the credentials' directory"
    named = _named(shown)
    match reason:
        case "revoked":
            return UnreachableReason(Reason.REVOKED, f"{named} was revoked", f"if that was a mistake, {anew}")
        case "not_issued":
            return UnreachableReason(
                Reason.NOT_ISSUED,
                f"{at} does not know {named}: it is not in its ledger",
                f"it was issued by another state directory, or the ledger was lost: {anew}",
            )
        case "unclaimed_too_long":
            return UnreachableReason(
                Reason.UNCLAIMED, f"{named} was to be used for the first time before a deadline", anew
            )
        case "other_workload":
            return UnreachableReason(
                Reason.OTHER_WORKLOAD,
                f"{named} is for {shown.name}, and the workload with that uuid is of another service",
                "issue it with --service and --namespace of that workload's primary service "
                "(the server's log names it)",
            )
        case "expired":
            return UnreachableReason(Reason.EXPIRED, f"{named} has expired by the clock of {at}", anew)
        case "not_yet_valid":
            return UnreachableReason(
                Reason.NOT_YET_VALID,
                f"{named} is not valid yet by the clock of {at}",
                "that clock is behind, or was ahead when it was issued: set it",
            )
        case _:
            return UnreachableReason(
                Reason.REFUSED,
                f"{at} refuses {named}{_words(reason)}",
                "the server's log has more (`client refused`)",
            )


def _named(shown: PresentedCertificate) -> str:
    return f"this proxy's certificate {shown.serial}"


def _at(address: str, at: str) -> str:
    return "" if at == address else f", which is {address},"


def _words(said: str) -> str:
    return f" ({said})" if said else ""


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(_shown, names[:4])) or "nobody"


def _shown(name: str) -> str:
    """Return a name from outside in a form that is safe for a terminal and fits a line."""
    short = name[:_NAME_CHARACTERS]
    return short if short.isprintable() else ascii(short)


def _span(shown: PresentedCertificate) -> str:
    return f"{stamp(shown.not_before)} to {stamp(shown.not_after)}"
