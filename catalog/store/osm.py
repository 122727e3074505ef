"""OSM's own policy in a view, and what it is found by."""

from typing import Final

from catalog.store.view import IN_VIEW, kind
from mesh.kinds import UPSTREAM_TRAFFIC_SETTING
from mesh.limits import UpstreamTrafficSetting

settings: Final = kind(
    UpstreamTrafficSetting,
    UPSTREAM_TRAFFIC_SETTING,
    "UpstreamTrafficSettings",
    lambda found: found.key,
)

settings_by_host: Final = IN_VIEW.index(
    "UpstreamTrafficSettings by host", settings, lambda _, found: (found.host,)
)
