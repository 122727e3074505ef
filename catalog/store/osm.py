"""OSM's own policies in a view, and what they are found by."""

from typing import Final

from catalog.store.view import IN_VIEW, kind
from mesh.egress import Egress
from mesh.identity import ServiceIdentity
from mesh.kinds import EGRESS, RETRY, UPSTREAM_TRAFFIC_SETTING
from mesh.limits import UpstreamTrafficSetting
from mesh.policy import PolicyKey
from mesh.retries import Retry

retries: Final = kind(Retry, RETRY, "Retries", lambda found: found.key)
settings: Final = kind(
    UpstreamTrafficSetting,
    UPSTREAM_TRAFFIC_SETTING,
    "UpstreamTrafficSettings",
    lambda found: found.key,
)

retries_by_source: Final = IN_VIEW.index("Retries by source", retries, lambda _, found: (found.source,))
settings_by_host: Final = IN_VIEW.index(
    "UpstreamTrafficSettings by host", settings, lambda _, found: (found.host,)
)

egresses: Final = kind(Egress, EGRESS, "Egresses", lambda found: found.key)


def _sources(_: PolicyKey, egress: Egress) -> tuple[ServiceIdentity, ...]:
    return egress.sources


egresses_by_source: Final = IN_VIEW.index("Egresses by source", egresses, _sources)
