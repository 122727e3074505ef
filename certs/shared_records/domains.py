"""The records of certificates that several servers share, and what a store has lost of them.

`HEADER`, `PROXIES` and `SERVICES` are the common beginnings of keys, and `mend_proxy` and `mend_pair` decide
what is lost. `key_of_proxy` and `name_of_record` lead from a proxy to its record, and back. A pure module.
"""

from certs.ledger.records.fields import PROXIES as PROXIES
from certs.ledger.records.fields import key_of_proxy as key_of_proxy
from certs.ledger.records.fields import name_of_record as name_of_record
from certs.ledger.records.header import HEADER as HEADER
from certs.ledger.records.lost_certificates import is_revoked as is_revoked
from certs.ledger.records.lost_certificates import mend_proxy as mend_proxy
from certs.pair_records.fields import SERVICES as SERVICES
from certs.pair_records.lost_pairs import mend_pair as mend_pair
