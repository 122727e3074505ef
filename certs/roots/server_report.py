"""Reports that the servers of one mesh give each other in a root rotation. A pure module.

A server knows only the proxies that are connected to it, or whose agents ask it. The leader takes a step when
all servers that are here have taken over the last one, and together know that all proxies are ready.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from certs.roots.evidence import BlockingPart, BlockReason, Part, ServerEvidence, behind
from certs.roots.proxy_facts import NO_FACTS, ProxyFacts, ProxyKey, key_of_name, united
from certs.roots.rotation import Rotation, Stage
from meshwright.mesh.identity import ProxyName

_NO_PROXIES: Final[Mapping[ProxyKey, ProxyFacts]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ServerReport:
    """Report of one server.

    - `step`: the step that the server has taken over (`step_of`).
    - `is_behind`: whether it still shows or trusts roots of another step.
    - `issued`: serials of the proxy certificates that it has issued last.
    - `proxies`: facts about the proxies that are connected to it, or whose agents have asked it.
    """

    step: str
    is_behind: bool = False
    issued: tuple[str, ...] = ()
    proxies: Mapping[ProxyKey, ProxyFacts] = field(default_factory=lambda: _NO_PROXIES)


Reports = Mapping[str, ServerReport | None]
"""The other servers that are here, by name, with their reports; None for a server that has not reported."""

NO_REPORTS: Final[Reports] = MappingProxyType({})
"""The reports at the only server of a mesh."""


def step_of(rotation: Rotation | None) -> str:
    """Return the identifier of a step; proxies that are given up do not change it. Empty without a rotation.

    For example `trusting 5f2c8a... 77ab01... 2026-11-22T12:00:00+00:00`.
    """
    if rotation is None:
        return ""
    back = " back" if rotation.aborted else ""
    return f"{rotation.stage} {rotation.signer} {rotation.other} {rotation.since.isoformat()}{back}"


def report(
    rotation: Rotation, ours: ServerEvidence, known: Mapping[ProxyName, ProxyFacts], issued: tuple[str, ...]
) -> ServerReport:
    """Return the report of a server with these facts about its own parts and about proxies."""
    is_behind = any(blocking_part.part is Part.SERVER for blocking_part in behind(rotation, ours))
    proxies = {key_of_name(name): facts for name, facts in known.items()}
    return ServerReport(step_of(rotation), is_behind, issued, proxies)


def lacking(rotation: Rotation, known: Mapping[ProxyName, ProxyFacts]) -> tuple[str, ...]:
    """Return the names of connected proxies that have not acknowledged the secrets of this stage, sorted."""

    def lacks(facts: ProxyFacts) -> bool:
        mesh = facts.mesh or frozenset()
        match rotation.stage:
            case Stage.TRUSTING:
                return rotation.other not in mesh
            case Stage.REPLACING:
                return facts.service != rotation.signer
            case Stage.RETIRING:
                return rotation.other in mesh

    return tuple(sorted(str(name) for name, facts in known.items() if facts.connected and lacks(facts)))


def known_to_all(
    rotation: Rotation, own: Mapping[ProxyName, ProxyFacts], others: Reports
) -> Callable[[ProxyName], ProxyFacts | None]:
    """Return a function for what all servers together know about a proxy.

    Reports about another step are left out, because they are about other roots.
    """
    step = step_of(rotation)
    reports = tuple(one.proxies for one in others.values() if one is not None and one.step == step)
    if not reports:
        return own.get

    def facts_of(name: ProxyName) -> ProxyFacts:
        key = key_of_name(name)
        elsewhere = [found for proxies in reports if (found := proxies.get(key)) is not None]
        return united((own.get(name, NO_FACTS), *elsewhere), rotation.signer)

    return facts_of


def behind_elsewhere(
    rotation: Rotation, others: Reports, is_known: Callable[[str], bool]
) -> Iterator[BlockingPart]:
    """Yield the other servers that block the next step; `is_known` is about a serial in the ledger.

    A certificate that this server does not know yet may belong to a proxy that it would not wait for.
    """
    step = step_of(rotation)
    for name, one in sorted(others.items()):
        if one is None:
            why = BlockReason.NO_REPORT
        elif one.step != step:
            why = BlockReason.STEP_NOT_TAKEN
        elif one.is_behind:
            why = BlockReason.SERVER_CERTIFICATE
        elif not all(map(is_known, one.issued)):
            why = BlockReason.UNKNOWN_CERTIFICATES
        else:
            continue
        yield BlockingPart(Part.OTHER_SERVER, why, name)
