"""Names in the JSON document of a proxy that both the pages and their HTML use."""

from typing import Final

SECTIONS: Final = ("listeners", "routes", "clusters", "endpoints", "secrets", "history")
"""Fields with the configuration of one proxy, in the order of its page."""

CERTIFICATE_REVOKED: Final = "certificate revoked"
CERTIFICATE_EXPIRED: Final = "certificate expired"
CERTIFICATE_UNUSED: Final = "certificate not used in time"
GROUP_FAILED: Final = "group failed"
WORKLOAD_GONE: Final = "its workload is gone, and it keeps its last configuration"

FAILURES: Final = (GROUP_FAILED, CERTIFICATE_REVOKED, CERTIFICATE_EXPIRED, CERTIFICATE_UNUSED)
"""First words of the field `why` of a failed proxy; other values mean a late proxy."""
