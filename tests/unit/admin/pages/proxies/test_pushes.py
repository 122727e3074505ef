"""Tests of pushes as they are shown."""

from dataclasses import replace
from typing import Any

import pytest

from meshwright.admin.pages.proxies.pushes import push
from meshwright.delivery.history.push import Answer, Trigger
from xds.protocol.wire import Rejection


def test_push_is_shown_with_all_fields(reading: Any) -> None:
    """A push shows its trigger, resources, size, durations and answer."""
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


def test_rejected_push_shows_the_proxy_s_message(reading: Any) -> None:
    """A rejected push shows the proxy's code and message; a push that answered a request has no wave."""
    (shown,) = reading.the_pushes
    rejection = Rejection(3, "no")
    nack = replace(shown, trigger=Trigger.SUBSCRIBED, waves=(), answer=Answer.NACK, rejection=rejection)
    result = push(nack, lambda *_: True)
    assert result["trigger"] == {"why": "subscribed", "waves": []}
    assert (result["answer"], result["error"]) == ("nack", {"code": 3, "message": "no"})


@pytest.mark.parametrize("kept", ["old", "new"])
def test_change_with_one_stored_version_is_not_comparable(reading: Any, kept: str) -> None:
    """A change is comparable only if both versions are stored."""
    (shown,) = reading.the_pushes
    result: Any = push(shown, lambda _type, _name, version: version == kept)
    assert [item["comparable"] for item in result["changed"]] == [False]
