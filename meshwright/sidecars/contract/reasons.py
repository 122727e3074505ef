"""Reasons for which a proxy rejects a resource: its content, or the state of the machine."""

import enum


class Reason(enum.StrEnum):
    """Kind of reason for which a proxy rejects a resource.

    CONTENT: the same resource will always be rejected. Every other reason may pass without a change of the
    resource.
    """

    CONTENT = "content"
    ADDRESS_IN_USE = "address-in-use"
    ADDRESS_MISSING = "address-missing"
    PERMISSION = "permission"
    LIMIT = "limit"

    @property
    def of_the_moment(self) -> bool:
        """Return whether the proxy may accept the same resource later."""
        return self is not Reason.CONTENT
