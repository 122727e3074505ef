"""Values become JSON, and what is not known does not."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admin.pages.jsonable import jsonable
from certs.material import PrivateKey
from mesh.config import TlsVersion


@dataclass(frozen=True)
class _Value:
    number: int
    when: datetime
    hidden: str = field(default="secret", repr=False)


def test_values_become_their_plainest_form() -> None:
    """Nested dataclasses, enums, sets, durations; fields without a repr stay out."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    value = {1: (_Value(1, when), TlsVersion.V1_3, timedelta(minutes=1), Path("/a"), frozenset({"b", "a"}))}
    assert jsonable(value) == {
        "1": [{"number": 1, "when": "2026-01-01T00:00:00.000Z"}, "TLSv1_3", 60.0, "/a", ["a", "b"]]
    }


@pytest.mark.parametrize("value", [PrivateKey(b"k"), b"bytes", object()])
def test_what_may_hide_a_secret_is_refused(value: object) -> None:
    """A new field of such a type fails here, not in a browser."""
    with pytest.raises(TypeError, match=r"is not shown$"):
        jsonable([value])
