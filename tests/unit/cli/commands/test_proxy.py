"""Tests of the text of one proxy."""

from meshwright.cli.commands.proxy import text

FOUND = {
    "cn": "u.store.shop",
    "workload": "shop/store-1",
    "identity": "shop/store",
    "state": "connected",
    "age": "5 min",
    "address": "1.2.3.4:5",
    "protocol": "delta",
    "sync": {"cluster": "synced", "route": "pending"},
    "why": "route pending for 3 s",
}
PUSH = {
    "at": "2026-01-02T03:04:05.000Z",
    "trigger": {
        "why": "change",
        "waves": [
            {
                "wave": 7,
                "causes": [{"object": "TrafficTarget shop/t", "change": "changed", "origin": "t.yaml:1"}],
                "more": 2,
            }
        ],
    },
    "type": "route",
    "added": ["b"],
    "changed": [{"name": "a", "from": "1", "to": "2"}],
    "removed": [],
    "again": 1,
    "bytes": 321,
    "answer": "pending",
    "seconds": 3.0,
    "error": None,
}
HEAD = """\
u.store.shop: workload shop/store-1, identity shop/store
connected for 5 min from 1.2.3.4:5 by delta
cluster synced, route pending
behind: route pending for 3 s
"""


def test_proxy_is_shown_with_its_state_and_sections() -> None:
    """The given sections are shown in the order of the help; an empty one shows "none"."""
    shown = text(FOUND | {"routes": [{"text": "a -> b"}], "listeners": []})
    assert shown == HEAD + "\nlisteners\n  none\n\nroutes\n  a -> b\n"


def test_rejected_and_unserved_parts_are_shown_first() -> None:
    """Rejected resources and policy that the driver cannot serve come before the sections."""
    shown = text(FOUND | {"rejected": ["route a"], "left_out": ["MW1: no TCP"]})
    assert shown.removeprefix(HEAD).splitlines() == [
        "rejected, and left out or served in the version before: route a",
        "not served: MW1: no TCP",
    ]


def test_missing_details_of_a_proxy_are_left_out() -> None:
    """A proxy without a workload and without a reason has no lines for these."""
    gone = {"cn": "u.store.shop", "state": "disconnected", "age": "1 h", "sync": {}, "why": ""}
    assert text(gone) == "u.store.shop: no workload is known\ndisconnected for 1 h\n"


def test_push_is_shown_in_one_line() -> None:
    """The line has the resources, the size, the answer and the trigger."""
    nacked = PUSH | {"answer": "nack", "seconds": 0.0124, "error": {"code": 3, "message": "no\nway"}}
    asked = PUSH | {"trigger": {"why": "subscribed", "waves": []}, "answer": "ack", "seconds": 0.001}
    nothing = {"added": [], "changed": [], "removed": ["c"], "again": 0}
    wave = "wave 7: TrafficTarget shop/t changed (t.yaml:1), 2 more"
    what = "2026-01-02T03:04:05.000Z route: added b; changed a; 1 sent again (321 bytes)"
    lines = text(FOUND | {"history": [PUSH, nacked, asked | nothing]}).removeprefix(HEAD).splitlines()
    assert lines == [
        "",
        "history",
        f"  {what}, pending for 3.0 s, {wave}",
        f"  {what}, nack 12.4 ms: no way, {wave}",
        "  2026-01-02T03:04:05.000Z route: removed c (321 bytes), ack 1.0 ms, subscribed",
    ]
