"""The records of certificates that several servers share, and what a store has lost of them.

`HEADER`, `PROXIES` and `SERVICES` are the common beginnings of keys, and `mend_proxy` and `mend_pair` decide
what is lost. A pure module.
"""

from certs.ledger.records.fields import PROXIES as PROXIES
from certs.ledger.records.header import HEADER as HEADER
from certs.ledger.records.lost_certificates import is_revoked as is_revoked
from certs.ledger.records.lost_certificates import mend_proxy as mend_proxy
from certs.pair_records.fields import SERVICES as SERVICES
from certs.pair_records.lost_pairs import mend_pair as mend_pair
