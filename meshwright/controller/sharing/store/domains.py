"""The records that each server heals: what the parts of the program know about their records."""

from typing import Final

from certs.shared_records.custody import AUTHORITY, SEAL, is_same_mesh
from certs.shared_records.domains import HEADER, PROXIES, SERVICES, is_revoked, mend_pair, mend_proxy
from meshwright.controller.sharing.gateway_record import GATEWAY_DOMAIN
from meshwright.controller.sharing.record_forms import LEVEL_DOMAIN
from meshwright.controller.sharing.shared_tokens import TOKEN_DOMAIN
from meshwright.records.recovery.domain import Domain, Identity, newest

DOMAINS: Final = (
    Domain(SEAL, newest, needed_at_start=True),
    Domain(AUTHORITY, newest, needed_at_start=True),
    Domain(HEADER, newest, needed_at_start=True),
    Domain(PROXIES, mend_proxy, is_revoked),
    Domain(SERVICES, mend_pair),
    TOKEN_DOMAIN,
    GATEWAY_DOMAIN,
    LEVEL_DOMAIN,
)
"""All domains. Presence of servers and objects of users are not healed: their removal is never a loss.

The reports of a root change are not healed either, because each server writes its own again.
"""

IDENTITY: Final = Identity(SEAL, is_same_mesh)
"""The data key identifies a mesh."""
