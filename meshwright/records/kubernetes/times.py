"""Time limits of the store of records in a Kubernetes API. A pure module."""

from dataclasses import dataclass, field
from typing import Final

from meshwright.kube.lease import Terms
from meshwright.kube.reflector.pacing import Pacing


@dataclass(frozen=True, slots=True)
class Times:
    """Time limits of one read and one write, and the time between two renewals of presence, in seconds.

    A store that takes two seconds for each answer is slow, and can be used: joins are late. The limits are
    therefore more than twice as long. After an outage the changes of other servers arrive within the longest
    pause of the feeds, because a revocation must not wait for half a minute.
    """

    read: float = 5.0
    write: float = 5.0
    renew: float = 5.0
    lease: Terms = field(default_factory=Terms)
    pacing: Pacing = field(default_factory=lambda: Pacing(longest=5.0))


TIMES: Final = Times()
