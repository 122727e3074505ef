"""Failure of a request that was sent to several servers. Pure."""

from collections.abc import Mapping

from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.mesh.host_port import HostPort


def combined(failures: Mapping[HostPort, EnrolmentFailure]) -> EnrolmentFailure:
    """Return one failure for the failures at all servers, with each reason once, in the order of trying.

    A retry is pointless only if every server has refused the request: a server that is away may accept the
    request later.
    """
    reasons = {address: failure.why for address, failure in failures.items()}
    refused = all(failure.refused for failure in failures.values())
    if len(set(reasons.values())) == 1:
        return EnrolmentFailure(next(iter(reasons.values())), refused)
    named = (why if str(address) in why else f"{address}: {why}" for address, why in reasons.items())
    return EnrolmentFailure("; ".join(named), refused)
