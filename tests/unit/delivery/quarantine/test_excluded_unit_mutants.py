"""Negative control: mutants that fail open are detected by the tests of excluded units."""

from collections.abc import Callable
from typing import Any

import pytest

from catalog.policy.values.inbound import OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.delivery.quarantine import fallback, record
from meshwright.delivery.quarantine import reduced_snapshot as lessened
from meshwright.delivery.trials import Trials
from meshwright.mesh.service import Protocol
from meshwright.sidecars.contract.driver import Piece
from tests.unit.delivery.quarantine.refusing_proxy import RefusingProxyPlane, match, policy, port, rule
from tests.unit.delivery.quarantine.test_excluded_units import _settled

HTTP_BEFORE = policy(port(80, Protocol.HTTP, OnlyRules((rule("a", "all"),))))
HTTP_AFTER = policy(port(80, Protocol.HTTP, OnlyRules((rule("a", "only"), rule("b", "bad")))))
TCP_BEFORE = policy(port(90, Protocol.TCP, OnlyRules((rule("a"), rule("b")))))
TCP_AFTER = policy(port(90, Protocol.TCP, OnlyRules((rule("b"),))), ciphers="bad")


def _goes_back(good: Any, own: Any) -> Any:
    """Serve the last good version unchanged."""
    del own
    return good


def _holds_all(self: Trials[Any], blamed: Any) -> Trials[Any]:
    """Treat all units that were refused together as guilty."""
    return Trials(self.waiting, (), self.guilty | {*blamed})


def _lets_in(self: record.Record) -> frozenset[str]:
    """Exclude nothing."""
    del self
    return frozenset()


MUTANTS: tuple[tuple[Any, str, Any], ...] = (
    (fallback, "admitted_by_both", _goes_back),
    (Piece, "admits", property(lambda _: False)),
    (Trials, "refused", _holds_all),
    (record.Record, "units", property(_lets_in)),
    (lessened, "units_of", lambda _: {}),
)


def _holds() -> None:
    """Check that a caller is restricted on both kinds of port, while something else is refused."""
    for before, after in ((HTTP_BEFORE, HTTP_AFTER), (TCP_BEFORE, TCP_AFTER)):
        _narrowed(before, after)


def _narrowed(before: ProxyPolicy, after: ProxyPolicy) -> None:
    proxy = RefusingProxyPlane(frozenset({match("bad")}), frozenset({"bad"}))
    proxy.publish(before)
    _settled(proxy, before)
    proxy.publish(after)
    _settled(proxy, after)
    assert len(proxy.out()) == (after is HTTP_AFTER)


def test_unchanged_program_passes() -> None:
    """Otherwise the failures of the mutants would prove nothing."""
    _holds()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda item: item[1])
def test_mutant_that_fails_open_is_detected(
    monkeypatch: pytest.MonkeyPatch, mutant: tuple[Any, str, Callable[..., Any]]
) -> None:
    """Each mutant admits an extra caller, or treats an innocent unit as guilty."""
    monkeypatch.setattr(*mutant)
    with pytest.raises(AssertionError):
        _holds()
