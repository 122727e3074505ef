"""The ledger of proxy certificates: their issuance, use and revocation, and the progress of each proxy.

A certificate alone does not decide whether a proxy may connect: the certificate may be revoked, or copied
before the first use. The ledger records each proxy certificate with stamps for its events, and every new xDS
stream is checked against the ledger. The package never stores a private key.
- `contract`: the interface of a ledger, and of one that several servers share.
- `entry`, `progress`: one certificate as a value, and the progress of a proxy by all its certificates.
- `sqlite`: the ledger in one file, with `file` (schema), `rows` (SQL), `cache` (entries read before),
  `pending_entries` (stamps not written yet) and `mark` (detects an older ledger put back).
- `records`: the ledger in records that several servers share, and `retention`, by which it forgets.
  `remembered_stamps` is common to both ledgers.
- `rebuilding`: the stand-in for a lost ledger.
The look-up runs on the event loop, so waiting for a disk, a store or another process is not allowed.
Stamps are therefore remembered first and written later. Continue with `contract`.
"""
