"""Tests of verdicts in the fields of a proxy's record."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine.verdict_fields import (
    LONGEST_TEXT,
    MOST,
    MOST_BYTES,
    shared_form,
    verdicts_in,
    with_verdicts,
)
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.records.content import UnreadableContentError
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName

NODE = NodeKey("a1.cart.shop")
AT = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def _verdict(unit: str, **facts: Any) -> Verdict:
    before = Verdict(NODE, UnitId(unit), ROUTE, ResourceName("r"), "match m", "no", 2, AT)
    return replace(before, **facts)


def test_verdicts_come_back_and_other_fields_stay() -> None:
    """A writer keeps the fields of others, and of newer versions, also inside a verdict."""
    found = (_verdict("a"), _verdict("b"))
    fields: Any = with_verdicts({"certificates": {"3f": {}}, "new": 1}, found)
    assert verdicts_in(NODE, fields).verdicts == found
    fields["rejected"]["a"]["newer"] = "fact"
    after: Any = with_verdicts(fields, [_verdict("a", times=3)], [UnitId("b")])
    assert after["rejected"].keys() == {"a"}
    assert (after["rejected"]["a"]["newer"], after["rejected"]["a"]["times"]) == ("fact", 3)
    assert (after["certificates"], after["new"]) == ({"3f": {}}, 1)
    assert with_verdicts(after, (), [UnitId("a")]) == {"certificates": {"3f": {}}, "new": 1}


def test_repeated_change_is_none() -> None:
    """A change may be called again with its own result."""
    fields = with_verdicts(None, [_verdict("a")])
    assert with_verdicts(fields, [_verdict("a")], [UnitId("gone")]) is None
    assert with_verdicts(None, ()) is None


def test_stored_form_is_short() -> None:
    """A message of an Envoy may have a whole configuration, and any characters."""
    long = _verdict("a", message="no\n\tsuch \ud800 " * 10_000, about="é" * 999, times=900)
    fields = with_verdicts(None, [long])
    [stored] = verdicts_in(NODE, fields).verdicts
    assert stored == shared_form(long)
    assert stored.message.startswith("no such ? no such ? ")
    assert (len(stored.message), len(stored.about), stored.times) == (LONGEST_TEXT, LONGEST_TEXT, 7)


def test_record_has_a_limited_number_of_verdicts() -> None:
    """The verdicts that are there stay, because a server that replaced them would do so for ever."""
    first = with_verdicts(None, [_verdict(f"{number:03}") for number in range(100, 100 + 2 * MOST)])
    before = {verdict.unit for verdict in verdicts_in(NODE, first).verdicts}
    assert len(before) == MOST
    assert with_verdicts(first, [_verdict("000")]) is None
    changed = with_verdicts(first, [_verdict("100", times=5), _verdict("000")], [UnitId("101")])
    after = {verdict.unit for verdict in verdicts_in(NODE, changed).verdicts}
    assert after == before - {"101"} | {"000"}


def test_record_has_limited_bytes_for_verdicts() -> None:
    """Certificates need room in the same record."""
    long = ResourceName("x" * 4000)
    fields: Any = with_verdicts(None, [_verdict(f"{number}", name=long) for number in range(9)])
    assert 0 < len(fields["rejected"]) < 9
    assert len(json.dumps(fields["rejected"])) <= MOST_BYTES
    assert with_verdicts(None, [_verdict("a", name=ResourceName("x" * MOST_BYTES))]) is None


BROKEN: tuple[object, ...] = (
    "text",
    {},
    {"type": "t", "resource": "r", "about": "a", "message": "m", "times": 0, "at": 1},
    {"type": "t", "resource": "r", "about": "a", "message": "m", "times": True, "at": 1},
    {"type": "t", "resource": "r", "about": "a", "message": "m", "times": 1, "at": -1},
    {"type": "t", "resource": "r", "about": "a", "message": "m", "times": 1, "at": 10**30},
)


@pytest.mark.parametrize("value", BROKEN)
def test_unreadable_verdict_is_passed_over_and_stays(value: object) -> None:
    """The other verdicts are read, and the sentence names the unit."""
    fields = with_verdicts({"rejected": {"bad": value}}, [_verdict("a")])
    read = verdicts_in(NODE, fields)
    assert read.verdicts == (_verdict("a"),)
    [sentence] = read.unreadable
    assert sentence.startswith("rejected, unit bad: ")
    after: Any = with_verdicts(fields, (), [UnitId("a")])
    assert after["rejected"] == {"bad": value}


def test_field_of_another_form_is_not_changed() -> None:
    """A newer version may have another form."""
    fields = {"rejected": ["a"]}
    assert verdicts_in(NODE, fields).unreadable == ("rejected: expected a JSON object",)
    with pytest.raises(UnreadableContentError, match="rejected: expected a JSON object"):
        with_verdicts(fields, [_verdict("b")])
