"""Tests of the traffic page's verdict."""

import pytest

from meshwright.admin.html.looks.traffic import of_traffic
from meshwright.admin.html.tones import Tone
from meshwright.admin.jsonable import Document, Json

BANK = "shop/buyer to shop/bank:80 succeeds in 95.00%"
STORE = "shop/buyer to shop/store:80 succeeds in 50.00%"
ROWS = "rows with requests in the last 60 seconds"
TOLD = "only 2 of 3 connected proxies have reported statistics recently."


def edge(success: float | None, to: str = "store") -> Json:
    """Return a row of requests from shop/buyer to a service."""
    return {
        "source": {"namespace": "shop", "service": "buyer"},
        "destination": {"namespace": "shop", "service": to, "port": 80},
        "success": success,
    }


def found(*rows: Json, told: int = 2, connected: int = 2) -> Document:
    """Return a document of the traffic page."""
    return {
        "window_seconds": 60.4,
        "reporting": {"proxies": told, "connected": connected},
        "rows": list(rows),
    }


@pytest.mark.parametrize(
    ("answer", "tone", "sentence"),
    [
        (found(), Tone.PLAIN, "No request was counted in the last 60 seconds."),
        (found(edge(None)), Tone.PLAIN, "No request was counted in the last 60 seconds."),
        (
            found(told=0),
            Tone.PLAIN,
            f"No request was counted in the last 60 seconds; {TOLD.replace('2 of 3', '0 of 2')}",
        ),
        (
            found(edge(1.0), edge(0.99)),
            Tone.GOOD,
            f"2 {ROWS}; all at least 99% success.",
        ),
        (
            found(edge(1.0), edge(0.95, "bank"), edge(0.98)),
            Tone.WARNING,
            f"Success below 99% in 2 of 3 {ROWS}: {BANK}.",
        ),
        (
            found(edge(0.5), connected=3),
            Tone.BAD,
            f"Success below 99% in 1 of 1 {ROWS.replace('rows', 'row')}: {STORE}; {TOLD}",
        ),
    ],
)
def test_traffic_verdict_names_the_worst_row(answer: Document, tone: Tone, sentence: str) -> None:
    """The verdict names the row with the lowest success rate, and is never good if no request was counted."""
    verdict = of_traffic(answer)
    assert (verdict.tone, verdict.sentence) == (tone, sentence)
