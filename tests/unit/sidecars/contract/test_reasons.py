"""Tests of the reasons of rejections: each text was reported by an Envoy 1.40."""

import pytest

from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.envoy.reasons import reason

LISTENER = "Error adding/updating listener(s) outbound-listener|10.0.0.1|7001: "


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (LISTENER + "cannot bind '127.77.0.1:44767': Address already in use", Reason.ADDRESS_IN_USE),
        (LISTENER + "cannot bind '192.0.2.1:7001': Cannot assign requested address", Reason.ADDRESS_MISSING),
        (LISTENER + "cannot bind '[fd00::1]:8000': Cannot assign requested address", Reason.ADDRESS_MISSING),
        (LISTENER + "cannot bind '127.77.0.2:81': Permission denied", Reason.PERMISSION),
        (LISTENER + "ListenSocket: Setting socket options failed", Reason.PERMISSION),
        (LISTENER + "malformed IP address: localhost", Reason.CONTENT),
        (
            LISTENER + "error adding listener: 'l2' has duplicate address '127.77.0.4:8000' as existing "
            "listener, to check if the listener has duplicated addresses with other listeners or "
            "'enable_reuse_port' is set to 'false' for the listener",
            Reason.CONTENT,
        ),
        (
            "regex '/big[0-9a-f]{120}' RE2 program size of 248 > max program size of 100",
            Reason.CONTENT,
        ),
    ],
)
def test_rejection_is_temporary_only_if_the_system_refused_a_socket(said: str, expected: Reason) -> None:
    """Every other rejection concerns the content and stays until the content changes."""
    assert reason(said) is expected
    assert reason(said).of_the_moment is (expected is not Reason.CONTENT)


def test_system_error_quoted_from_a_policy_is_a_rejection_of_content() -> None:
    """An expression in an error message may have any text, system errors included."""
    assert reason("Invalid regex 'Address already in use(': missing ): Permission denied(") is Reason.CONTENT
