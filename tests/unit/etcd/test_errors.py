"""Tests of errors: which failures pass, which are certain to have had no effect, and what they say."""

import grpc
import grpc.aio
import pytest

from meshwright.etcd.errors import (
    EtcdError,
    LeaseNotFoundError,
    RefusedError,
    RevisionGoneError,
    TokenError,
    UnavailableError,
    error_of,
)

PLACE = "etcd at https://10.0.0.1:2379"


def failure(code: grpc.StatusCode, details: str) -> EtcdError:
    """Return our error for a status of gRPC."""
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)
    return error_of(error, "Txn", "https://10.0.0.1:2379")


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", UnavailableError),
        ("UNAVAILABLE", "etcdserver: request timed out", UnavailableError),
        ("UNAVAILABLE", "etcdserver: leader changed", UnavailableError),
        ("UNAVAILABLE", "etcdserver: no leader", UnavailableError),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", UnavailableError),
        ("FAILED_PRECONDITION", "etcdserver: not leader", UnavailableError),
        ("UNKNOWN", "Stream removed", UnavailableError),
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", RefusedError),
        ("PERMISSION_DENIED", "etcdserver: permission denied", RefusedError),
        ("INVALID_ARGUMENT", "etcdserver: request is too large", RefusedError),
        ("UNIMPLEMENTED", "", RefusedError),
        ("UNAUTHENTICATED", "etcdserver: invalid auth token", TokenError),
        ("INVALID_ARGUMENT", "etcdserver: revision of auth store is old", TokenError),
        ("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", RevisionGoneError),
        ("NOT_FOUND", "etcdserver: requested lease not found", LeaseNotFoundError),
    ],
)
def test_failures_have_kinds(code: str, details: str, kind: type[EtcdError]) -> None:
    """A caller tries again after a passing failure, and shows a refusal to a person."""
    error = failure(grpc.StatusCode[code], details)
    assert type(error) is kind
    assert str(error).startswith(f"{PLACE} ")
    undone = isinstance(error, UnavailableError) and error.is_undone
    assert undone is (details == "etcdserver: no leader"), "only this refusal is certain to have no effect"


def test_text_from_outside_is_one_short_line() -> None:
    """Control characters and long texts of a server do not reach the log."""
    sentence = str(failure(grpc.StatusCode.UNAVAILABLE, "a\n\x1b[31mb" + "c" * 1000))
    assert len(sentence) < 400
    assert sentence.isprintable()
