"""Requests that offer to change to another protocol (RFC 9110, section 7.8).

A part of the oracle; see `catalog.oracle.decide`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request


@dataclass(frozen=True, slots=True)
class UpgradeOffer:
    """Protocols that a request offers in its header Upgrade, as written: those that pass, and the others."""

    passing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def offered(request: Request, passing: Iterable[str]) -> UpgradeOffer:
    """Divide the protocols that a request offers; without `Connection: Upgrade` it offers none."""
    if "upgrade" not in (each.lower() for each in _tokens(request, "connection")):
        return UpgradeOffer()
    known, all_of_it = frozenset(passing), _tokens(request, "upgrade")
    return UpgradeOffer(
        tuple(each for each in all_of_it if each.lower() in known),
        tuple(each for each in all_of_it if each.lower() not in known),
    )


def too_many(found: UpgradeOffer) -> LocalReply | None:
    """Return Envoy's answer to an offer of several protocols that each pass: it passes one only."""
    if len(found.passing) < 2:
        return None
    return LocalReply(
        403, f"it offers {', '.join(found.passing)}, and Envoy passes the offer of one protocol alone"
    )


def _tokens(request: Request, header: str) -> tuple[str, ...]:
    values = (value for name, value in request.headers if name.lower() == header)
    return tuple(token.strip() for value in values for token in value.split(",") if token.strip())
