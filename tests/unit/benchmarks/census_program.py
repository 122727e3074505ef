"""A program that counts a process with large values in a table and in derived values; prints JSON."""

import json
import sys
from dataclasses import dataclass, field

from benchmarks.profiles.census import census
from meshwright.engine.derived import derived
from meshwright.engine.graph import Graph
from meshwright.engine.table import Table

BIG = 1_000_000


@dataclass(eq=False)
class Words:
    """A source with one table."""

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        self.words: Table[str, tuple[bytes, ...]] = Table(self.graph, "census words")


@derived
def same_word(words: Words, key: str) -> bytes:
    """Return an input unchanged."""
    return words.words[key][0]


@derived
def longer_word(words: Words, key: str) -> bytes:
    """Return a value derived from an input."""
    return words.words[key][0] + b"!"


def main() -> None:
    """Create the values, and print the size of each owner of this module."""
    words = Words()
    words.graph.apply([words.words.set("big", (b"x" * BIG,))])
    assert len(same_word(words, "big")) == BIG
    assert len(longer_word(words, "big")) == BIG + 1
    owner_usages = census()
    ours = [owner for owner in owner_usages if owner.endswith(("same_word", "longer_word", "census words"))]
    sizes = {owner: owner_usages[owner].size for owner in ours}
    table = owner_usages["table census words"].types["builtins.bytes"]
    sys.stdout.write(json.dumps({"sizes": sizes, "bytes in the table": table}))


if __name__ == "__main__":
    main()
