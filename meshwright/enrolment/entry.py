"""Admission of join requests: attackers must not use up the allowance of other machines behind one address.

Only failed requests are charged to their address. If an address has used up the allowance, a further request
is still judged if the proof shows a name together with an unguessable value, for example a join token with
the secret. Such a request is charged to this name and not to the address.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from meshwright.enrolment.limits import Allowances, EnrolmentLimits, LimitExhausted
from meshwright.enrolment.proofs.contract import Evidence, Proof, RecognisableProof

_IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address that identify a site, because a site owns all addresses below them (RFC 6177)."""


class Entry:
    """Allowances for join requests, by client address and by recognised name. Times are monotonic seconds."""

    def __init__(self, limits: EnrolmentLimits) -> None:
        self._failures = Allowances(limits.by_address)
        self._recognised = Allowances(limits.by_token)

    async def require(self, evidence: Evidence, proof: Proof | None, now: float) -> None:
        """Raise LimitExhausted if a request must not be judged now; `proof` is `None` for an unknown kind."""
        origin = origin_of(evidence.address)
        # The usual case costs nothing: only failures use up the allowance.
        if self._failures.has_room(origin, now):
            return
        name = await proof.recognise(evidence) if isinstance(proof, RecognisableProof) else ""
        if proof is None or not name:
            raise LimitExhausted(f"address {origin}")
        self._recognised.require(f"{proof.kind} {name}", now, f"{proof.kind} {name}")

    def failed(self, address: str, now: float) -> None:
        """Charge a failed join request to the allowance of the client address."""
        self._failures.take(origin_of(address), now)


def origin_of(address: str) -> str:
    """Return the key for counting an address: the IPv4 address, or the /64 network of an IPv6 address.

    For example, `2001:db8::1` becomes `2001:db8::/64`, and `::ffff:10.0.0.1` becomes `10.0.0.1`.
    """
    try:
        result = ip_address(address)
    except ValueError:
        return address
    if not isinstance(result, IPv6Address):
        return str(result)
    if result.ipv4_mapped is not None:
        return str(result.ipv4_mapped)
    return str(ip_network((int(result), _IPV6_PREFIX), strict=False))
