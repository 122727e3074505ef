"""Random MutualTLS objects, which permit calls without a certificate."""

from random import Random
from typing import Final

from tests.differential.topology import GRPC, HTTP_A, HTTP_B, NET, PLAIN, SERVERS, Document

SHARE: Final = 0.7
"""Of policies that have some."""

_SOURCES: Final = (
    {"kind": "IPRange", "name": f"{PLAIN[0]}/32"},
    {"kind": "IPRange", "name": f"{PLAIN[1]}/32"},
    {"kind": "IPRange", "name": f"{NET}.0/24"},
    {"kind": "IPRange", "name": "192.0.2.0/24"},
    {"kind": "Service", "name": "web", "namespace": "shop"},  # which is at other addresses
)
_GROUPS: Final = ("g.0", "g.0", "g.1", "missing")
_CREATED: Final = ("", "2023-01-01T00:00:00Z", "2024-06-01T12:00:00Z")


def mutual_tls(random: Random) -> list[Document]:
    """Make some objects or none; most of them admit callers."""
    if random.random() > SHARE:
        return []
    return [_object(random, number) for number in range(random.choice((1, 2, 2, 3, 4)))]


def _object(random: Random, number: int) -> Document:
    server = random.choice(SERVERS)
    spec: Document = {"mode": random.choice(("Permissive", "Permissive", "Permissive", "Strict"))}
    if random.random() < 0.4:
        spec["serviceAccounts"] = [server.account]
    if random.random() < 0.4:
        spec["ports"] = random.sample((HTTP_A, HTTP_B, GRPC), random.choice((1, 2)))
    if spec["mode"] == "Permissive" and random.random() < 0.85:
        spec["plaintext"] = _plain(random)
    metadata = {"name": f"m.{number}", "namespace": server.namespace}
    if created := random.choice(_CREATED):
        metadata["creationTimestamp"] = created
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "MutualTLS",
        "metadata": metadata,
        "spec": spec,
    }


def _plain(random: Random) -> Document:
    result: Document = {}
    if random.random() < 0.5:
        result["sources"] = random.sample(_SOURCES, random.choice((1, 1, 2)))
    if random.random() < 0.4:
        names = random.sample(_GROUPS, random.choice((1, 2)))
        result["matches"] = [{"kind": "HTTPRouteGroup", "name": name} for name in sorted(set(names))]
    return result
