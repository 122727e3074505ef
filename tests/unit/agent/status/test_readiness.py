"""What is read from Envoy's answers, and what follows."""

from dataclasses import replace

import pytest

from meshwright.agent.envoy import draining
from meshwright.agent.envoy.draining import DrainSettings, in_use, is_over
from meshwright.agent.status.readiness import ProxyState, missing, read_state

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
READY = ProxyState("LIVE", 2, 3, 1, workers_started=True, ports=frozenset({8080, 15003}))


def test_a_state_is_read() -> None:
    """Counters by name, ports of active listeners and of their chains."""
    assert read_state({"state": "LIVE"}, STATS, LISTENERS) == READY
    nothing = ProxyState("unknown", 0, 0, 0, workers_started=False, ports=frozenset())
    assert read_state({}, "", {"configs": "?"}) == nothing


@pytest.mark.parametrize(
    ("state", "ports", "reasons"),
    [
        (READY, (8080,), ()),
        (READY, (8080, 9090), ("no listener serves port 9090",)),
        (replace(READY, state="DRAINING"), (), ("Envoy is DRAINING",)),
        (replace(READY, workers_started=False), (), ("Envoy has not started its workers",)),
        (replace(READY, accepted_clusters=0), (), ("no clusters have been received (1 were rejected)",)),
        (replace(READY, accepted_listeners=0, rejected=0), (), ("no listeners have been received",)),
    ],
)
def test_what_is_missing(state: ProxyState, ports: tuple[int, ...], reasons: tuple[str, ...]) -> None:
    """Each lack has its sentence."""
    assert missing(state, ports) == reasons


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
def test_draining_takes_at_least_and_at_most(elapsed: float, left: int | None, over: bool) -> None:
    """The least whatever happens, then until nobody is left or it cannot be told, at most the most."""
    assert is_over(DrainSettings(5, 45), elapsed, left) is over


def test_impossible_times_are_refused() -> None:
    """The least is not more than the most."""
    with pytest.raises(ValueError, match="must not be longer than the maximum"):
        DrainSettings(10, 5)


def test_what_is_in_use_is_requests_and_other_connections() -> None:
    """A kept HTTP connection is not; listeners count once, the admin's and workers' gauges not at all."""
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
    # Numbers of one moment do not always agree: an HTTP connection more than there are is none less.
    assert in_use("http.rds-inbound.8080.downstream_cx_active: 2\n") == 0
