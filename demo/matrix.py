"""The acceptance matrix: which request is served in which phase. Data, and checks of the data.

The phases A to I are those of OSM's bookstore demo: permissive, closed, with access policy, bookthief allowed
and denied again, then a TrafficSplit added, changed and deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from demo.apps import names
from demo.topology import (
    BOOKBUYER,
    BOOKSTORE,
    BOOKSTORE_V2,
    BOOKTHIEF,
    BOOKWAREHOUSE,
    MYSQL,
    STORE_V1,
    STORE_V2,
    WAREHOUSE,
    Place,
)
from meshwright.mesh.service import ServiceKey

REQUESTS: Final = 10
"""New requests per cell; all must have the expected outcome."""
SPLIT_REQUESTS: Final = 3000
"""Requests per measured split: a fair coin misses the tolerance of ±5 points once in 26 million samples."""
SURE_REQUESTS: Final = 600
"""Requests for a split of 100 to 0: a fault in 1 % of the requests is missed in 1 of 400 samples."""
SPLIT_TOLERANCE: Final = 5.0
"""Allowed difference between an expected and an observed share, in percentage points."""
LOOP_ROUNDS: Final = 4
"""Number of purchases of a client's endless loop that are observed for a verdict."""


@dataclass(frozen=True, slots=True)
class Request:
    """One kind of request, from a workload to a service: HTTP, or a database insert if `method` is empty."""

    source: Place
    destination: ServiceKey
    method: str = ""
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """Return the label of the matrix row, for example `bookbuyer → bookstore: GET /buy-a-book/new`."""
        what = f"{self.method} {self.path}".strip() or "insert"
        note = f" ({self.note})" if self.note else ""
        return f"{self.source.name} → {self.destination.name}: {what}{note}"


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: the manifests (file → variant), and the expected split of purchases.

    `split` is the expected percentage by identity; empty if the phase has no sample.
    """

    name: str
    title: str
    manifests: Mapping[str, str]
    split: Mapping[str, float]


def _headers(place: Place) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(names.client_headers(place.name).items()))


def _buy(source: Place, destination: ServiceKey = BOOKSTORE) -> Request:
    return Request(source, destination, "GET", names.BUY_A_BOOK, _headers(source))


def _restock(source: Place) -> Request:
    return Request(source, BOOKWAREHOUSE, "POST", names.RESTOCK_BOOKS, _headers(source))


def _books_bought(source: Place, *, named: bool = True) -> Request:
    headers = _headers(source) if named else ()
    return Request(
        source, BOOKSTORE, "GET", names.BOOKS_BOUGHT, headers, "" if named else "without its headers"
    )


def _insert(source: Place) -> Request:
    return Request(source, MYSQL, headers=_headers(source))


CELLS: Final[tuple[tuple[str, Request], ...]] = (
    # Columns are the phases ABCDEFGHI: + served, - denied.
    ("+-+++++++", _buy(BOOKBUYER)),
    ("+--+-----", _buy(BOOKTHIEF)),
    ("+-+++++++", _restock(STORE_V1)),
    ("+-+++++++", _restock(STORE_V2)),
    ("+-+++++++", _insert(WAREHOUSE)),
    # All other calls. Most are served only in permissive mode, which is their positive control.
    ("+-+++++++", _books_bought(BOOKBUYER)),
    ("+--------", _books_bought(BOOKBUYER, named=False)),
    ("+--------", _books_bought(BOOKTHIEF)),
    ("+----++++", _buy(BOOKBUYER, BOOKSTORE_V2)),
    ("+--------", _buy(BOOKTHIEF, BOOKSTORE_V2)),
    ("+--------", _restock(BOOKBUYER)),
    ("+--------", _restock(BOOKTHIEF)),
    ("+--------", Request(STORE_V1, BOOKWAREHOUSE, "GET", "/", _headers(STORE_V1))),
    ("+--------", _insert(BOOKBUYER)),
    ("+--------", _insert(BOOKTHIEF)),
    ("+--------", _insert(STORE_V1)),
    ("+--------", _buy(WAREHOUSE)),
)
"""Rows of the matrix: one character per phase, then the request."""

_V1: Final = {"mesh-config.yaml": "config/closed.yaml", "access.yaml": "access/traffic-access-v1.yaml"}
_BOTH: Final = {**_V1, "access-v2.yaml": "access/traffic-access-v2.yaml"}
_ALLOW_THIEF: Final = {**_V1, "access.yaml": "access/traffic-access-v1-allow-bookthief.yaml"}


def _split(variant: str) -> dict[str, str]:
    return {**_BOTH, "split.yaml": f"split/traffic-split-{variant}.yaml"}


def _share(first: float, second: float) -> dict[str, float]:
    return {STORE_V1.name: first, STORE_V2.name: second}


PHASES: Final = (
    Phase("A", "permissive, no policy", {"mesh-config.yaml": "config/permissive.yaml"}, {}),
    Phase("B", "closed, no policy", {"mesh-config.yaml": "config/closed.yaml"}, {}),
    Phase("C", "access policy", _V1, {}),
    Phase("D", "bookthief allowed", _ALLOW_THIEF, {}),
    Phase("E", "back to the access policy", _V1, {}),
    Phase("F", "split 100/0", _split("v1"), _share(100, 0)),
    Phase("G", "split 50/50", _split("50-50"), _share(50, 50)),
    Phase("H", "split 0/100", _split("v2"), _share(0, 100)),
    Phase("I", "split deleted", _BOTH, _share(100, 0)),
)

MTLS_PHASE: Final = "C"
"""Phase for attempts at the sidecars' inbound ports: bookbuyer is allowed, and bookthief is denied."""


def is_served(cell: str, phase: Phase) -> bool:
    """Return whether the cells of a matrix row expect the request to be served in a phase."""
    return cell[PHASES.index(phase)] == "+"


def uncontrolled() -> tuple[str, ...]:
    """Return the labels of rows with denials and without a positive control; these denials prove nothing."""
    return tuple(request.label for cell, request in CELLS if "-" in cell and "+" not in cell)


def sample_of(expected: Mapping[str, float]) -> int:
    """Return the number of purchases for checking a traffic split: fewer if one version gets all."""
    return SURE_REQUESTS if set(expected.values()) <= {0, 100} else SPLIT_REQUESTS


def split_fits(expected: Mapping[str, float], observed: Mapping[str, int]) -> bool:
    """Return whether a sample has the expected split: ±5 points, and exactly 0 where 0 % is expected."""
    total = sum(observed.values())
    if total < sample_of(expected) or not set(observed) <= set(expected):
        return False
    for name, percent in expected.items():
        count = observed.get(name, 0)
        if (percent == 0 and count) or abs(100 * count / total - percent) > SPLIT_TOLERANCE:
            return False
    return True
