"""Requests with an offer to change the protocol (RFC 9110, section 7.8).

A part of the oracle; see `catalog.oracle.decide`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request


@dataclass(frozen=True, slots=True)
class UpgradeOffer:
    """Protocols in a request's header Upgrade as written: forwarded ones, and ignored ones."""

    passing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def offered(request: Request, passing: Iterable[str]) -> UpgradeOffer:
    """Return the protocols in a request's Upgrade header; empty without `Connection: Upgrade`."""
    if "upgrade" not in (token.lower() for token in _tokens(request, "connection")):
        return UpgradeOffer()
    known, all_of_it = frozenset(passing), _tokens(request, "upgrade")
    return UpgradeOffer(
        tuple(item for item in all_of_it if item.lower() in known),
        tuple(item for item in all_of_it if item.lower() not in known),
    )


def too_many(result: UpgradeOffer) -> LocalReply | None:
    """Return Envoy's answer to an offer of several forwarded protocols, because only one is forwarded."""
    if len(result.passing) < 2:
        return None
    return LocalReply(
        403, f"it offers {', '.join(result.passing)}, and Envoy passes on an offer of only one protocol"
    )


def _tokens(request: Request, header: str) -> tuple[str, ...]:
    values = (value for name, value in request.headers if name.lower() == header)
    return tuple(token.strip() for value in values for token in value.split(",") if token.strip())
