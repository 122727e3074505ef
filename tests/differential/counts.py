"""Counts of a run: decisions by kind, and disagreements of oracle and Envoys."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import yaml

from catalog.oracle.decide import Answer, Decision, LocalReply, Place, Request, admitting, arriving
from catalog.oracle.request.request import path_of
from catalog.store.gateway import ROUTE_KINDS
from catalog.store.view import View
from tests.differential.cases import RE2_PATTERNS, Case
from tests.differential.routes.effects import RuleEffect
from tests.differential.topology import is_http
from tests.differential.wire import Answered

FLOORS: Final = {
    "allowed": 0.15,
    "denied": 0.15,
    "decided by several objects": 0.15,
    "with a path that sidecars change": 0.1,
    "changed, and allowed": 0.03,
    "turned down by a sidecar": 0.03,
    "policies with expressions of RE2's": 0.5,
    "let in without a certificate": 0.05,
    "kept out without a certificate": 0.3,
    "decided by routes of the Gateway API": 0.05,
}
"""The least share of requests, or of policies, that a run must have of each."""


@dataclass(frozen=True)
class Disagreement:
    """A request with different results of the oracle and the Envoys."""

    case: Case
    asked: Request
    expected: str
    seen: Answered
    directly: str = ""

    def __str__(self) -> str:
        asked, version = self.asked, 2 if self.asked.http2 else 1
        policy = yaml.safe_dump_all(self.case.documents, sort_keys=False)
        way = f"straight to {self.directly}" if self.directly else "through both sidecars"
        if not is_http(asked.port):
            called = f"{asked.client} to {asked.service}:{asked.port} for {asked.server_name!r}"
            return f"{called} {way}: the oracle says {self.expected}, seen was {self.seen}, under\n{policy}"
        return (
            f"{asked.client} to {asked.service}:{asked.port} {asked.method} {asked.path!r} HTTP/{version} "
            f"{asked.headers} {way}: the oracle says {self.expected}, seen was {self.seen}, under\n{policy}"
        )


@dataclass
class Counts:
    """The counts of a run."""

    policies: int = 0
    requests: int = 0
    direct: int = 0
    plain: int = 0
    plain_allowed: int = 0
    answers: dict[Answer, int] = field(default_factory=dict)
    by_several: int = 0
    permissive: int = 0
    changed: int = 0
    changed_and_allowed: int = 0
    turned_down: int = 0
    by_routes: int = 0
    by_kind: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    effects: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    with_re2: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def count(self, view: View, request: Request, decision: Decision) -> None:
        """Count one decision."""
        self.requests += 1
        self.answers[decision.answer] = self.answers.get(decision.answer, 0) + 1
        kinds = {key.kind.name for key in decision.because if key.kind in ROUTE_KINDS}
        self.by_routes += bool(kinds)
        for kind in kinds:
            self.by_kind[kind] += 1
        if (effect := RuleEffect.of(view, request)) is not None:
            for name in effect.names:
                self.effects[name] += 1
        self.by_several += len(decision.because) > 1
        self.permissive += view.config.permissive
        arrived = arriving(view, request)
        self.turned_down += isinstance(arrived, LocalReply)
        if not isinstance(arrived, LocalReply) and path_of(arrived) != path_of(request):
            self.changed += 1
            self.changed_and_allowed += decision.allowed

    def count_plain(self, view: View, plain: Request, place: tuple[Place, bool]) -> bool:
        """Count a request without a certificate; return whether it is admitted."""
        yes = admitting(view, plain, place) is not None
        self.plain += 1
        self.plain_allowed += yes
        return yes

    def count_policy(self, made: Case) -> None:
        """Count one policy."""
        self.policies += 1
        self.with_re2 += any(
            match.get("pathRegex") in RE2_PATTERNS
            for document in made.documents
            if document["kind"] == "HTTPRouteGroup"
            for match in document["spec"]["matches"]
        )

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of requests and policies for which FLOORS has a floor."""
        denied = sum(self.answers.get(item, 0) for item in (Answer.REFUSED, Answer.UNREACHABLE))
        total = max(self.requests, 1)
        return {
            "allowed": self.answers.get(Answer.ALLOWED, 0) / total,
            "denied": denied / total,
            "decided by several objects": self.by_several / total,
            "with a path that sidecars change": self.changed / total,
            "changed, and allowed": self.changed_and_allowed / total,
            "turned down by a sidecar": self.turned_down / total,
            "policies with expressions of RE2's": self.with_re2 / max(self.policies, 1),
            "decided by routes of the Gateway API": self.by_routes / total,
            "let in without a certificate": self.plain_allowed / max(self.plain, 1),
            "kept out without a certificate": 1 - self.plain_allowed / max(self.plain, 1),
        }

    @property
    def too_few(self) -> dict[str, float]:
        """Return the shares that are below their floor."""
        return {name: share for name, share in self.shares.items() if share < FLOORS[name]}
