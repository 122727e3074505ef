"""Facts about proxies in a root rotation, as one server knows them, and of several servers together.

A proxy has streams at one server or at two while it moves, and its agent may ask yet another one. Therefore
the servers of one mesh exchange facts, not judgements. A pure module.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Final, NewType

from certs.roots.rotation import Fingerprint
from meshwright.mesh.identity import ProxyName

ProxyKey = NewType("ProxyKey", bytes)
"""Short form of a proxy's name: the facts about 10 000 proxies then fit into a record."""

KEY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ProxyFacts:
    """Facts about one proxy.

    - `mesh`: roots for verifying peers that it has acknowledged on all its streams; None without a stream.
    - `service`: signer of the certificates acknowledged on all its streams, or the other root; None without a
      stream.
    - `channel`: roots for verifying the control plane, as its agent has confirmed at `confirmed_at`; None
      without a confirmation.
    - `connected`: whether it has a stream, acknowledged or not.
    """

    mesh: frozenset[Fingerprint] | None = None
    service: Fingerprint | None = None
    channel: frozenset[Fingerprint] | None = None
    confirmed_at: datetime | None = None
    connected: bool = False


NO_FACTS: Final = ProxyFacts()
"""The facts about a proxy that no server knows."""


def key_of_name(name: ProxyName) -> ProxyKey:
    """Return the short form of a proxy's name."""
    return ProxyKey(hashlib.sha256(str(name).encode()).digest()[:KEY_BYTES])


def united(known: Iterable[ProxyFacts], signer: Fingerprint) -> ProxyFacts:
    """Return the facts of several servers about one proxy, while `signer` signs.

    Streams count together: each must have the roots. Of the confirmations the newest counts, and those of the
    same second together.
    """
    return reduce(lambda one, two: _both(one, two, signer), known, NO_FACTS)


def _both(one: ProxyFacts, two: ProxyFacts, signer: Fingerprint) -> ProxyFacts:
    older, newer = sorted((one, two), key=_when)
    channel = newer.channel
    if older.channel is not None and newer.channel is not None and _when(older) == _when(newer):
        channel = older.channel & newer.channel
    result = replace(newer, channel=channel, connected=one.connected or two.connected)
    if one.mesh is None or two.mesh is None:
        with_streams = one if two.mesh is None else two
        return replace(result, mesh=with_streams.mesh, service=with_streams.service)
    # With different signers the proxy shows the other root's certificate on one of its streams.
    services = sorted(filter(None, (one.service, two.service)), key=lambda root: root == signer)
    return replace(result, mesh=one.mesh & two.mesh, service=services[0] if services else None)


def _when(facts: ProxyFacts) -> float:
    return 0.0 if facts.confirmed_at is None else float(int(facts.confirmed_at.timestamp()))
