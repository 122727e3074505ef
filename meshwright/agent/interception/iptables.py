"""Programs for reading, setting and removing interception rules.

They act on the current network namespace and need CAP_NET_ADMIN there.
"""

import enum
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from meshwright.agent.interception.addresses import has_ipv6, knows_ipv6
from meshwright.agent.interception.netfilter import Table, change, differences, saved
from meshwright.agent.interception.owners import complaints
from meshwright.agent.interception.rules import PREFIX, Rules, routing, rules, tproxy_routing
from meshwright.agent.interception.settings import MARK, ROUTE_TABLE, Family, Interception, InterceptionError

_TIMEOUT_SECONDS: Final = 60.0
_PREFIXES: Final = {Family.IPV4: "iptables", Family.IPV6: "ip6tables"}


class Backend(enum.StrEnum):
    """The kernel interface of iptables: the system's default, or one by name.

    AUTO means legacy if legacy rules are in force in this namespace, else the system's default.
    """

    AUTO = "auto"
    NFT = "nft"
    LEGACY = "legacy"


class ProgramFailed(InterceptionError):
    """iptables or ip failed or could not be run; the message has its output."""


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Run a program and return the output; raise ProgramFailed with the error output."""
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise ProgramFailed(f"the program {argv[0]} is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramFailed(f"{argv[0]}: {error}") from error
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())
        raise ProgramFailed(f"{' '.join(argv)} ended with status {done.returncode}: {words}")
    return done.stdout


class Tables:
    """The interception rules of one address family, through one iptables backend."""

    def __init__(self, family: Family, backend: Backend = Backend.AUTO) -> None:
        name = _PREFIXES[family]
        self.family = family
        self.name = f"{name}{_suffix(name, backend)}"

    def in_force(self) -> dict[str, Table]:
        """Return this program's rules in the kernel; empty if iptables is not installed for the family."""
        program = f"{self.name}-save"
        return saved(run([program])) if shutil.which(program) else {}

    def test(self, rules: str) -> None:
        """Let iptables validate a change of rules, without making the change."""
        if rules:
            self._restore("--test", rules=rules)

    def make(self, rules: str) -> None:
        """Make a change of rules; an empty change has no effect."""
        if rules:
            self._restore(rules=rules)

    def _restore(self, *more: str, rules: str) -> None:
        # Without --wait the legacy backend fails at once if another program is changing rules.
        run([f"{self.name}-restore", "--noflush", "--wait=30", *more], rules)


def _suffix(name: str, backend: Backend) -> str:
    match backend:
        case Backend.NFT | Backend.LEGACY:
            return f"-{backend.value}"
        case Backend.AUTO:
            legacy = f"{name}-legacy-save"
            return "-legacy" if shutil.which(legacy) and "\n-A " in run([legacy]) else ""


@dataclass(frozen=True, slots=True)
class TproxyMark:
    """The packet mark and the number of the route table for TPROXY, also for their removal."""

    mark: int = MARK
    table: int = ROUTE_TABLE


def check(
    wanted: Interception | None, backend: Backend = Backend.AUTO, marked: TproxyMark = TproxyMark()
) -> tuple[str, ...]:
    """Return the differences between present and wanted rules (None: no rules), and the obstacles."""
    result = [] if wanted is None else [*_missing(wanted), *complaints(wanted)]
    for family in _families():
        tables = Tables(family, backend)
        target = _rules(wanted, family)
        result += [f"{tables.name}: {line}" for line in differences(tables.in_force(), target)]
        for line, is_wanted in _routing(wanted, marked, family):
            if _has(family, line) is not is_wanted:
                result.append(f"ip -{family.value} {line} is {'missing' if is_wanted else 'not wanted'}")
    return tuple(result)


def put(
    wanted: Interception | None, backend: Backend = Backend.AUTO, marked: TproxyMark = TproxyMark()
) -> bool:
    """Set the rules (None: remove them); return whether anything changed. Idempotent.

    iptables validates every change before the first one is made. Routes for TPROXY are added before the
    dependent rules, and removed after them. Raises ProgramFailed, and InterceptionError if another user has a
    target port of the redirection.
    """
    for sentence in () if wanted is None else (*_missing(wanted), *complaints(wanted)):
        raise InterceptionError(sentence)
    every = [Tables(family, backend) for family in _families()]
    changes = [change(tables.in_force(), _rules(wanted, tables.family)) for tables in every]
    routes = [(family, *item) for family in _families() for item in _routing(wanted, marked, family)]
    stale = [(family, line) for family, line, is_wanted in routes if _has(family, line) and not is_wanted]
    missing = [(family, line) for family, line, is_wanted in routes if is_wanted and not _has(family, line)]
    for tables, given in zip(every, changes, strict=True):
        tables.test(given)
    for family, line in missing:
        _ip(family, line, "add")
    for tables, given in zip(every, changes, strict=True):
        tables.make(given)
    for family, line in stale:
        _ip(family, line, "delete")
    return bool(missing or stale or any(changes))


@dataclass(frozen=True, slots=True)
class Redirection:
    """The target ports of the present redirection rules, and the exempt users; all empty without rules."""

    inbound: frozenset[int] = frozenset()
    outbound: frozenset[int] = frozenset()
    users: frozenset[int] = frozenset()

    @classmethod
    def by(cls, lines: Sequence[str]) -> "Redirection":
        """Parse rules as printed by `iptables-save`."""
        return cls(
            _numbers(rf"-A {PREFIX}IN_\S+ .*--(?:to-ports|on-port) (\d+)", lines),
            _numbers(rf"-A {PREFIX}OUT_\S+ .*--to-ports (\d+)", lines),
            _numbers(r"--uid-owner (\d+) .*-j RETURN", lines),
        )


def led() -> Redirection:
    """Return the redirections that apply now; reading them needs root. Raises ProgramFailed."""
    tables = (table for family in _families() for table in Tables(family).in_force().values())
    return Redirection.by([line for table in tables for line in table.rules])


def left_alone() -> frozenset[int]:
    """Return the users exempt from the redirections that apply now; raise ProgramFailed as `led` does."""
    return led().users


def _numbers(pattern: str, lines: Sequence[str]) -> frozenset[int]:
    return frozenset(int(result) for line in lines for result in re.findall(pattern, line))


def _families() -> tuple[Family, ...]:
    """Return the address families of the kernel; for a missing one iptables always fails."""
    return tuple(family for family in Family if family is Family.IPV4 or knows_ipv6())


def _missing(wanted: Interception) -> Iterator[str]:
    """Yield an obstacle if IPv6 is to be captured and the kernel lacks IPv6."""
    if Family.IPV6 in wanted.families and not wanted.ipv6_by_address and not knows_ipv6():
        yield "--ipv6 is set, but the kernel of this machine lacks IPv6; remove --ipv6"


def _rules(wanted: Interception | None, family: Family) -> Rules:
    return rules(wanted, family) if wanted and _is_here(wanted, family) else {}


def _is_here(wanted: Interception, family: Family) -> bool:
    """Return whether a family is to be captured in this thread's network namespace."""
    return family is Family.IPV4 or not wanted.ipv6_by_address or has_ipv6()


def _routing(wanted: Interception | None, marked: TproxyMark, family: Family) -> Iterator[tuple[str, bool]]:
    """Yield possible rules and routes for `ip`, each with whether the rule or route should exist."""
    wants = routing(wanted, family) if wanted and _is_here(wanted, family) else ()
    yield from ((line, True) for line in wants)
    others = tproxy_routing(marked.mark, marked.table, family)
    yield from ((line, False) for line in others if line not in wants)


def _has(family: Family, line: str) -> bool:
    """Return whether a rule or route of `ip` exists."""
    words = line.split()
    if words[0] == "rule":
        return any(
            item.get("fwmark") == words[2] and str(item.get("table")) == words[4]
            for item in _shown(family, "rule", "show")
        )
    try:
        result = _shown(family, "route", "show", "table", words[-1])
    except ProgramFailed:  # an unused table does not exist
        return False
    return any(item.get("type") == "local" and item.get("dev") == "lo" for item in result)


def _shown(family: Family, *words: str) -> list[Mapping[str, object]]:
    answer: list[Mapping[str, object]] = json.loads(run(["ip", f"-{family.value}", "-json", *words]) or "[]")
    return answer


def _ip(family: Family, line: str, verb: str) -> None:
    kind, *rest = line.split()
    run(["ip", f"-{family.value}", kind, verb, *rest])
