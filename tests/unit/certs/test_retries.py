"""Test of repeated failures to issue a certificate, and of their error messages."""

from datetime import UTC, datetime, timedelta

import pytest

from certs.errors import CertificateError, IssuerError, RequestError
from certs.retries import Retries
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName

NOW = datetime(2031, 1, 1, tzinfo=UTC)
STORE = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (IssuerError("ended at 2031-01-01 00:00:07"), "ended at 2031-01-01 00:00:02"),
        (IssuerError("is away"), "is away"),
        (RequestError("ended at 2031-01-01 00:00:07"), "ended at 2031-01-01 00:00:07"),
    ],
)
def test_same_failure_at_another_time_keeps_its_error_message(then: CertificateError, said: str) -> None:
    """Messages that differ only in a time are one problem and one log line.

    The count and the time of the next attempt continue.
    """
    retries = Retries(lambda: 0.0)
    retries.failed(STORE, IssuerError("ended at 2031-01-01 00:00:02"), None, NOW)
    retries.failed(STORE, then, None, NOW + timedelta(seconds=5))
    failure = retries.failures[STORE]
    assert (str(failure.error), type(failure.error)) == (said, type(then))
    assert (failure.times, failure.again) == (2, NOW + timedelta(seconds=7))
