"""Tests of readiness and draining, as read from Envoy's answers."""

from dataclasses import replace

import pytest

from meshwright.agent.envoy import draining
from meshwright.agent.envoy.draining import DrainSettings, in_use, is_over
from meshwright.agent.envoy.gateway import SentListener
from meshwright.agent.status.readiness import ProxyState, missing, read_state
from meshwright.mesh.host_port import HostPort

STATS = """\
cluster_manager.cds.update_rejected: 1
cluster_manager.cds.update_success: 2
listener_manager.lds.update_success: 3
listener_manager.lds.update_rejected: 0
listener_manager.workers_started: 1
"""
LISTENERS = {
    "configs": [
        {
            "name": "inbound-listener",
            "active_state": {
                "listener": {
                    "name": "inbound-listener",
                    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 15003}},
                    "filter_chains": [
                        {"filter_chain_match": {"destination_port": 8080}},
                        {"filter_chain_match": {"transport_protocol": "tls"}},
                    ],
                }
            },
        },
        {"name": "still-warming", "warming_state": {"listener": {"address": {}}}},
    ]
}
READY = ProxyState(
    "LIVE",
    2,
    3,
    1,
    workers_started=True,
    ports=frozenset({8080, 15003}),
    served=frozenset({"inbound-listener"}),
)
HTTPS, PLAIN = (
    SentListener(f"edge-listener|192.0.2.10|{port}", "shop/edge", HostPort("192.0.2.10", port))
    for port in (443, 8080)
)
GATEWAY = {
    "configs": [
        {
            "cluster": {
                "name": "gateway-listeners",
                "metadata": {
                    "filter_metadata": {
                        "meshwright.gateway": {
                            "gateway": "shop/edge",
                            "listeners": ["edge-listener|192.0.2.10|443", "edge-listener|192.0.2.10|8080"],
                        }
                    }
                },
            }
        }
    ]
}
EDGE = replace(READY, rejected=0, sent=(HTTPS, PLAIN), served=frozenset({HTTPS.name, PLAIN.name}))
_ASK = ", and Envoy rejected an update: `meshwright proxies` on the control plane has the reason"


def test_state_is_read_from_envoy_s_answers() -> None:
    """Counters are read by name, and ports from active listeners and their filter chains."""
    assert read_state({"state": "LIVE"}, STATS, LISTENERS, {}) == READY
    of_gateway = read_state({"state": "LIVE"}, STATS, LISTENERS, GATEWAY)
    assert of_gateway == replace(READY, sent=(HTTPS, PLAIN))
    nothing = ProxyState("unknown", 0, 0, 0, workers_started=False, ports=frozenset())
    assert read_state({}, "", {"configs": "?"}, {"configs": "?"}) == nothing


@pytest.mark.parametrize(
    ("state", "ports", "reasons"),
    [
        (READY, (8080,), ()),
        (READY, (8080, 9090), ("port 9090 is not served by a listener",)),
        (replace(READY, state="DRAINING"), (), ("Envoy is DRAINING",)),
        (replace(READY, workers_started=False), (), ("Envoy has not started its workers",)),
        (replace(READY, accepted_clusters=0), (), ("clusters have not been received (1 were rejected)",)),
        (replace(READY, accepted_listeners=0, rejected=0), (), ("listeners have not been received",)),
    ],
)
def test_missing_condition_has_a_sentence(
    state: ProxyState, ports: tuple[int, ...], reasons: tuple[str, ...]
) -> None:
    """Each missing condition of readiness has a sentence of its own."""
    assert missing(state, ports, was_ready=False) == reasons


@pytest.mark.parametrize(
    ("state", "first", "later"),
    [
        (EDGE, (), ()),
        (
            replace(EDGE, served=frozenset({PLAIN.name}), rejected=1),
            (
                (
                    f"listener 192.0.2.10:443 of Gateway shop/edge is not in use{_ASK}; a port below 1024 "
                    "needs CAP_NET_BIND_SERVICE for the proxy's user (`meshwright unit agent --low-ports`)"
                ),
            ),
            (),
        ),
        (
            replace(EDGE, sent=(PLAIN,), served=frozenset(), rejected=1),
            (f"listener 192.0.2.10:8080 of Gateway shop/edge is not in use{_ASK}",),
            (f"listener 192.0.2.10:8080 of Gateway shop/edge is not in use{_ASK}",),
        ),
        (
            replace(EDGE, sent=(PLAIN,), served=frozenset()),
            ("listener 192.0.2.10:8080 of Gateway shop/edge is not in use",),
            ("listener 192.0.2.10:8080 of Gateway shop/edge is not in use",),
        ),
        (replace(EDGE, sent=(), served=frozenset()), (), ()),
        (
            replace(EDGE, accepted_listeners=0),
            ("listeners have not been received",),
            ("listeners have not been received",),
        ),
    ],
    ids=["all", "one is rejected", "all are rejected", "none is in use yet", "none is in force", "none sent"],
)
def test_gateway_needs_its_listeners_to_become_ready(
    state: ProxyState, first: tuple[str, ...], later: tuple[str, ...]
) -> None:
    """At first it needs all of them. Later one is enough, so a rejected update ends no service."""
    assert missing(state, (), was_ready=False) == first
    assert missing(state, (), was_ready=True) == later


@pytest.mark.parametrize(
    ("elapsed", "left", "over"),
    [
        (0, 0, False),
        (4.9, 0, False),
        (5, 0, True),
        (5, 3, False),
        (44, None, False),
        (45, 3, True),
        (45, None, True),
    ],
)
def test_draining_lasts_between_its_minimum_and_its_maximum(
    elapsed: float, left: int | None, over: bool
) -> None:
    """After the minimum, draining ends when no connection is in use. At the maximum it ends in any case."""
    assert is_over(DrainSettings(5, 45), elapsed, left) is over


def test_drain_minimum_over_the_maximum_is_refused() -> None:
    """The minimum must not exceed the maximum."""
    with pytest.raises(ValueError, match="must not be longer than the maximum"):
        DrainSettings(10, 5)


def test_requests_and_other_connections_are_in_use() -> None:
    """An idle HTTP connection is not in use.

    Listeners count once, without the gauges of the admin interface and of workers.
    """
    assert draining.CONNECTIONS_PATH.endswith("downstream_(cx|rq)_active$")
    text = """\
http.admin.downstream_cx_active: 1
http.admin.downstream_rq_active: 1
http.async-client.downstream_rq_active: 1
http.rds-inbound.8080.downstream_cx_active: 2
http.rds-inbound.8080.downstream_rq_active: 1
listener.0.0.0.0_15001.downstream_cx_active: 2
listener.0.0.0.0_15001.worker_0.downstream_cx_active: 2
listener.[__1]_15003.downstream_cx_active: 3
listener.admin.downstream_cx_active: 1
listener.admin.main_thread.downstream_cx_active: 1
"""
    assert in_use(text) == 2 + 3 - 2 + 1
    # Gauges of one reading may disagree: more HTTP connections than connections must not give -1.
    assert in_use("http.rds-inbound.8080.downstream_cx_active: 2\n") == 0
