"""Counters of one program: its own calls by outcome, and served requests by client."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True)
class Counters:
    """Counters of one program since its start.

    `calls` counts by destination and outcome: an HTTP status, `ok`, or a kind of failure, for example
    `{"bookstore": {"200": 12, "refused": 1}}`. `last` is the newest outcome by destination. `identities`
    counts served calls by the responding program. `served` counts requests by the name that the client sends,
    without the requests of probes; `tokens` counts the requests of probes by their token.
    """

    calls: dict[str, Counter[str]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    identities: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def called(self, destination: str, outcome: str, identity: str = "") -> None:
        """Count one call of this program, with the identity of the responding program if known."""
        self.calls.setdefault(destination, Counter())[outcome] += 1
        self.last[destination] = outcome
        if identity:
            self.identities[identity] += 1

    def serve(self, caller: str, token: str = "") -> None:
        """Count one request served by this program."""
        if token:
            self.tokens[token] += 1
        else:
            self.served[caller or "unknown"] += 1

    def to_json(self) -> str:
        """Return the counters as JSON with sorted keys, for the control socket."""
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
        """Parse the output of `to_json`."""
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
