"""The ledger of proxy certificates: which were issued, used, revoked, and how far each proxy has come.

A certificate alone does not say whether a proxy may connect: it may have been revoked, or copied before its
first use. The ledger records each proxy certificate and its stamps, and every new xDS stream is checked
against it. The package never stores a private key.
- `contract`: the interface of a ledger. A ledger that several machines share would implement it too.
- `entry`, `progress`: one certificate as a value, and how far a proxy has come by all its certificates.
- `sqlite`: the ledger in one file, with `file` (schema), `rows` (SQL), `cache` (entries that were read),
  `pending_entries` (stamps not written yet) and `mark` (detects an older ledger put back).
- `rebuilding`: the stand-in for a ledger that was lost.
The look-up runs on the event loop, so it must not wait for a disk or for another process that holds the lock.
That is why stamps are remembered first and written later. Continue with `contract`.
"""
