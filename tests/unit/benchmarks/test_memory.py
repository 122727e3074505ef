"""A census charges each object once, and says what one service more holds."""

from dataclasses import dataclass, field

from benchmarks.census import census
from benchmarks.memory import Held, by_sort, per_service
from benchmarks.processes import Memory
from engine.derived import derived
from engine.graph import Graph
from engine.table import Table

BIG = 1_000_000
MEMORY = Memory(1, 1, 1)


@dataclass(eq=False)
class Words:
    """A source with one table."""

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        self.words: Table[str, tuple[bytes, ...]] = Table(self.graph, "census words")


@derived
def same_word(words: Words, key: str) -> bytes:
    """Return an input as it is."""
    return words.words[key][0]


@derived
def longer_word(words: Words, key: str) -> bytes:
    """Return something made of an input."""
    return words.words[key][0] + b"!"


def test_an_object_is_charged_to_its_first_owner_alone() -> None:
    """What the table has is the table's; what was made of it is its function's; a node has none."""
    words = Words()
    words.graph.apply([words.words.set("big", (b"x" * BIG,))])
    assert len(same_word(words, "big")) == BIG
    assert len(longer_word(words, "big")) == BIG + 1
    found = census()
    assert BIG <= found["table census words"].size < 2 * BIG
    assert BIG <= found[f"value {__name__}.longer_word"].size < 2 * BIG
    assert found["table census words"].types["builtins.bytes"] >= BIG
    others = [owner for owner in found if owner.endswith(("same_word", "longer_word", "read census words"))]
    assert f"node {__name__}.same_word" in others
    assert sum(found[owner].size for owner in others) < 2 * BIG


def test_what_there_is_anyway_is_nobodys_share() -> None:
    """The slope between two sizes, by owner and by sort of owner."""
    small = Held(MEMORY, {"node a": (1000, 10), "node b": (100, 1), "grpc": (5000, 50)})
    large = Held(MEMORY, {"node a": (3000, 30), "node c": (200, 2), "grpc": (5000, 50)})
    found = per_service([(10, small), (20, large)])
    assert found == {"node a": (200, 2), "node b": (-10, -0.1), "node c": (20, 0.2), "grpc": (0, 0)}
    assert by_sort(found) == {"node": (210, 2.1), "grpc": (0, 0)}
