"""Meaning of the API server's errors for a caller of the store. A pure module."""

from typing import Final

from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.records.contract import RecordsError, StoreUnavailableError

_PASSING: Final = frozenset(
    {
        # The API server's answer is missing or broken, so the request may be done, now or later.
        Reason.UNREACHABLE, Reason.TIMEOUT, Reason.BROKEN, Reason.INACTIVE, Reason.NONSENSE,
        # An answer with a status from 500 may follow a write: the API server's own request to etcd is
        # sometimes done after the API server has given up.
        Reason.SERVER,
        # The request was not done, but a later attempt may succeed.
        Reason.THROTTLED, Reason.CREDENTIALS, Reason.GONE,
    }
)  # fmt: skip


def is_conflict(error: KubeError) -> bool:
    """Return whether a compared write or removal was refused because of the present record.

    The statuses are 409 for an object with the same name (create) or with another resourceVersion (patch,
    delete), and 404 for a missing object. A missing namespace or definition has the status 404 too, but is
    another error.
    """
    if not isinstance(error, ApiError):
        return False
    is_missing = error.status == 404 and error.reason is Reason.NOT_FOUND and error.verb != "create"
    return error.is_conflict or is_missing


def is_missing_object(error: KubeError) -> bool:
    """Return whether the requested object does not exist, although the kind is served."""
    return isinstance(error, ApiError) and error.status == 404 and error.reason is Reason.NOT_FOUND


def failure(error: KubeError) -> RecordsError:
    """Return the store's error for any other error of the API server."""
    if error.reason in _PASSING:
        return StoreUnavailableError(str(error))
    return RecordsError(str(error))
