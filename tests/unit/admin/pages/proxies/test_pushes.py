"""A push as it is shown."""

from dataclasses import replace
from typing import Any

import pytest

from meshwright.admin.pages.proxies.pushes import push
from meshwright.delivery.history.push import Answer, Trigger
from xds.protocol.wire import Rejection


def test_a_push_is_shown_whole(reading: Any) -> None:
    """What, why, how much, and what was said to it."""
    (shown,) = reading.the_pushes
    assert push(shown, lambda *_: True) == {
        "at": "2026-01-02T03:04:05.000Z",
        "trigger": {
            "why": "change",
            "waves": [
                {
                    "wave": 7,
                    "at": "2026-01-02T03:04:05.000Z",
                    "causes": [
                        {
                            "object": "TrafficTarget shop/buyers",
                            "origin": "mesh.yaml:31 (document 5)",
                            "change": "changed",
                        }
                    ],
                    "more": 0,
                }
            ],
        },
        "type": "route",
        "protocol": "delta",
        "nonce": "3",
        "version": "v2",
        "added": [],
        "changed": [{"name": "rds-inbound.8080", "from": "old", "to": "new", "comparable": True}],
        "removed": [],
        "again": 0,
        "bytes": 321,
        "answer": "ack",
        "seconds": 0.0123,
        "seconds_from_event": 0.1,
        "error": None,
    }


def test_a_rejection_is_shown_in_the_proxy_s_words(reading: Any) -> None:
    """And a push that answered a request has no wave."""
    (shown,) = reading.the_pushes
    said = Rejection(3, "no")
    nack = replace(shown, trigger=Trigger.SUBSCRIBED, waves=(), answer=Answer.NACK, rejection=said)
    found = push(nack, lambda *_: True)
    assert found["trigger"] == {"why": "subscribed", "waves": []}
    assert (found["answer"], found["error"]) == ("nack", {"code": 3, "message": "no"})


@pytest.mark.parametrize("kept", ["old", "new"])
def test_what_is_kept_of_one_version_alone_cannot_be_compared(reading: Any, kept: str) -> None:
    """Both are needed."""
    (shown,) = reading.the_pushes
    found: Any = push(shown, lambda _type, _name, version: version == kept)
    assert [each["comparable"] for each in found["changed"]] == [False]
