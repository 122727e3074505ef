"""The ledger in records that several servers share: one record for each proxy, with all its certificates.

- `ledger`: the ledger itself, which implements `certs.ledger.contract.SharedLedger`.
- `writes`: the changes of records, on the event loop of the store.
- `entries`: the entries as this server shows them: those of the store (`known_entries`), with stamps that are
  not written yet.
- `pruning`: which certificates may be forgotten, and which records may vanish. `lost_certificates`: what a
  store has lost of a record.
- `fields`: the fields of a proxy's record, and `header` those of the record about the ledger itself.
The package never decides who is admitted.
"""
