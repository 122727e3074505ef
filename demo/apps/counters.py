"""What one program counts: its own calls by outcome, and what it served by who asked."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True)
class Counters:
    """The counts of one program since it started.

    `calls` is destination → outcome → number, an outcome being an HTTP status, `ok` or a kind of failure;
    `last` is destination → newest outcome; `identities` counts who answered a call that was served;
    `served` counts requests by the caller's own name for itself, `tokens` those that carried a probe's
    token (and these alone), so that a probe's requests can be told from the rest.
    """

    calls: dict[str, Counter[str]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    identities: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def called(self, destination: str, outcome: str, identity: str = "") -> None:
        """Count one call of ours, with who answered where that is known."""
        self.calls.setdefault(destination, Counter())[outcome] += 1
        self.last[destination] = outcome
        if identity:
            self.identities[identity] += 1

    def serve(self, caller: str, token: str = "") -> None:
        """Count one request that we served."""
        if token:
            self.tokens[token] += 1
        else:
            self.served[caller or "unknown"] += 1

    def to_json(self) -> str:
        """Return the counts as JSON, keys sorted."""
        return json.dumps(
            {
                "calls": self.calls,
                "last": self.last,
                "identities": self.identities,
                "served": self.served,
                "tokens": self.tokens,
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        data: Mapping[str, Mapping[str, object]] = json.loads(text)
        return cls(
            calls={name: _counter(outcomes) for name, outcomes in data["calls"].items()},
            last={name: str(outcome) for name, outcome in data["last"].items()},
            identities=_counter(data["identities"]),
            served=_counter(data["served"]),
            tokens=_counter(data["tokens"]),
        )


def _counter(data: object) -> Counter[str]:
    return Counter(
        {str(name): int(number) for name, number in data.items()} if isinstance(data, dict) else {}
    )
