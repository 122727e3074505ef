"""Words of a proxy's JSON document that pages write and their HTML looks for."""

from typing import Final

SECTIONS: Final = ("listeners", "routes", "clusters", "endpoints", "secrets", "history")
"""Fields that hold what one proxy is to be told, in the order of its page."""

CERTIFICATE_REVOKED: Final = "certificate revoked"
CERTIFICATE_EXPIRED: Final = "certificate expired"
CERTIFICATE_UNUSED: Final = "certificate not used in time"
GROUP_FAILED: Final = "group failed"

FAILURES: Final = (GROUP_FAILED, CERTIFICATE_REVOKED, CERTIFICATE_EXPIRED, CERTIFICATE_UNUSED)
"""Beginnings of the field `why` by which a proxy fails, rather than being late."""
