"""Which requests to join are judged: guessers use up no pace of others behind the same address.

Only a request that comes to nothing is charged to its address. Where an address has too many of those, a
request from it is still judged if its proof names what it entitles by something that a guesser cannot know,
such as the secret of a join token. It is then charged to that name, and to no address.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from meshwright.enrolment.limits import Allowances, EnrolmentLimits, LimitExhausted
from meshwright.enrolment.proofs.contract import Evidence, Proof, RecognisableProof

_IPV6_PREFIX: Final = 64
"""The bits of an IPv6 address that one site has: whoever has one address of them has all (RFC 6177)."""


class Entry:
    """The allowances of addresses and of recognised names; times are seconds that only go forward."""

    def __init__(self, limits: EnrolmentLimits) -> None:
        self._failures = Allowances(limits.by_address)
        self._recognised = Allowances(limits.by_token)

    async def require(self, evidence: Evidence, proof: Proof | None, now: float) -> None:
        """Raise LimitExhausted where a request is not to be judged; `proof` is None for an unknown kind."""
        origin = origin_of(evidence.address)
        if self._failures.has_room(origin, now):
            return
        name = await proof.recognise(evidence) if isinstance(proof, RecognisableProof) else ""
        if proof is None or not name:
            raise LimitExhausted(f"address {origin}")
        self._recognised.require(f"{proof.kind} {name}", now, f"{proof.kind} {name}")

    def failed(self, address: str, now: float) -> None:
        """Charge a request that came to nothing to its address."""
        self._failures.take(origin_of(address), now)


def origin_of(address: str) -> str:
    """Return what an address is counted by: itself, of IPv6 its network of 64 bits (2001:db8::/64)."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _IPV6_PREFIX), strict=False))
