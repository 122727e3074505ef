"""Protocol upgrades of requests (RFC 9110, section 7.8); by default WebSockets only.

Envoy answers 403 to an upgrade without a configuration, but a server must ignore the offer of an unsupported
protocol. Apache HttpClient 5.4, for example, offers `TLS/1.2` with every request. Tunnels (CONNECT) are
refused.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.type.matcher.v3 import regex_pb2, string_pb2

ALIKE: Final = 16
"""Number of sets of upgrades whose expression is remembered: a mesh has one."""

_END: Final = ""


class Upgrades(Feature):
    """Protocol upgrades: those that the mesh allows pass, and all others are ignored."""

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Configure the upgrades that pass, and a regular expression for the ignored ones."""
        passing = terms.long_lived.upgrades
        for item in passing:
            manager.upgrade_configs.add(upgrade_type=item)
        regex = regex_pb2.RegexMatcher(regex=other_than(passing))
        ignored = string_pb2.StringMatcher(safe_regex=regex)
        manager.http_protocol_options.ignore_http_11_upgrade.append(ignored)


@lru_cache(ALIKE)
def other_than(names: tuple[str, ...]) -> str:
    """Return an RE2 expression for every text except these names, in upper or lower case.

    RE2 lacks negative look-ahead, so the expression follows the names letter by letter. For example,
    `("ws",)` gives `(?i)([^w].*|w([^s].*|s.+)?)?`.
    """
    return "(?i)" + _other_than(names)


def _other_than(endings: Iterable[str]) -> str:
    """Return an RE2 expression for every text except these endings of names."""
    by_letter: dict[str, list[str]] = {}
    for ending in sorted(endings):
        by_letter.setdefault(ending[:1], []).append(ending[1:])
    complete = by_letter.pop(_END, None) is not None
    if not by_letter:
        return ".+" if complete else ".*"
    letters = "".join(map(_escaped, by_letter))
    longer = "|".join(_escaped(letter) + _other_than(rest) for letter, rest in by_letter.items())
    return f"([^{letters}].*|{longer})" + ("" if complete else "?")


def _escaped(letter: str) -> str:
    return letter if letter.isalnum() or letter == "_" else f"\\{letter}"
