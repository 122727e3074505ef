"""Why a proxy refuses what it is sent: because of what it says, or because of the moment."""

import enum


class Reason(enum.StrEnum):
    """CONTENT: it will be refused again until it is another. All others pass, and nobody edits for it."""

    CONTENT = "content"
    ADDRESS_IN_USE = "address-in-use"
    ADDRESS_MISSING = "address-missing"
    PERMISSION = "permission"
    LIMIT = "limit"

    @property
    def of_the_moment(self) -> bool:
        """Say whether the very same may be accepted later."""
        return self is not Reason.CONTENT
