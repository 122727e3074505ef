"""What a client said of one resource, where it rejected several; the sentences are an Envoy 1.40's."""

import pytest

from xds.protocol.blame import said_of
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
def test_each_has_its_own_words(message: str, name: ResourceName, said: str) -> None:
    """By the lines that begin with a name; all of them where it is not said so."""
    assert said_of(Rejection(13, message), name, NAMED) == said
