"""Tests of the error text of one resource in a rejection of several; the texts are Envoy 1.40's."""

import pytest

from xds.protocol.blame import message_about
from xds.protocol.resources.resource import ResourceName
from xds.protocol.wire import Rejection

START = "Error adding/updating listener(s)"
ONE, TWO, LONG = map(ResourceName, ("out|10.0.0.1|80", "in|10.0.0.1", "out|10.0.0.1|8080"))
BUSY = f"{ONE}: cannot bind '10.0.0.1:80': Address already in use"
WRONG = f"{TWO}: Proto constraint validation failed\nfield: {ONE} is not there"
NAMED = frozenset({ONE, TWO, LONG})


@pytest.mark.parametrize(
    ("message", "name", "said"),
    [
        (f"{START} {BUSY}\n{WRONG}\n", ONE, f"{START} {BUSY}"),
        (f"{START} {BUSY}\n{WRONG}\n", TWO, f"{START} {WRONG}"),
        (f"{START} {LONG}: malformed\n{BUSY}\n", ONE, f"{START} {BUSY}"),
        (f"{START} {BUSY}\n", ONE, f"{START} {BUSY}"),
        (f"{START} {BUSY}\n", TWO, f"{START} {BUSY}\n"),
        (f"only {ONE}: for one or all", ONE, f"only {ONE}: for one or all"),
    ],
)
def test_each_rejected_resource_gets_its_own_part_of_the_error(
    message: str, name: ResourceName, said: str
) -> None:
    """The text is split at lines that begin with a resource's name; otherwise the whole text is used."""
    assert message_about(Rejection(13, message), name, NAMED) == said
