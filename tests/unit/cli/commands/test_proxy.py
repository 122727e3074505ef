"""One proxy as lines for people."""

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


def test_a_proxy_is_where_it_stands_and_its_sections() -> None:
    """Those that the server gave, in the order of the help; an empty one is said."""
    shown = text(FOUND | {"routes": [{"text": "a -> b"}], "listeners": []})
    assert shown == HEAD + "\nlisteners\n  none\n\nroutes\n  a -> b\n"


def test_what_a_proxy_is_not_served_as_it_should_be_stands_above() -> None:
    """What it has rejected, and what its kind cannot do."""
    shown = text(FOUND | {"rejected": ["route a"], "left_out": ["MW1: no TCP"]})
    assert shown.removeprefix(HEAD).splitlines() == [
        "rejected, and left out or served in the version before: route a",
        "not served: MW1: no TCP",
    ]


def test_a_proxy_in_step_whose_workload_is_gone() -> None:
    """What there is nothing to say of is left out."""
    gone = {"cn": "u.store.shop", "state": "disconnected", "age": "1 h", "sync": {}, "why": ""}
    assert text(gone) == "u.store.shop: no workload is known\ndisconnected for 1 h\n"


def test_a_push_is_one_line() -> None:
    """What, how much, the answer, and why."""
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
