"""Keys, the certificate authority, issued certificates and the ledger of proxy certificates.

- `keys` makes and reads keys, certificates and requests. This package and its neighbours are the only users
  of `cryptography`.
- `issuers` signs: the built-in CA, a CA in files, Vault, and cert-manager. `contract` is their common
  interface.
- `ledger` records every proxy certificate and its revocation. `peer` checks a connecting proxy against the
  ledger.
- `roots` has the change from one root to the next, with the interface of the store for the authority's state.
  `authority_files` implements this store, and `state` has the other files of the state directory.
- `authority_records` and `pair_records` implement the same for several servers, in records that they share;
  `report_records` has their reports to each other in a root rotation.
- `custody` opens CA and ledger together; `manager` keeps one certificate for each service identity.

The bytes of a private key never reach a log, an error or a repr. Time is always an argument, so expiry and
renewal are tested without waiting. The package does not know the configuration of proxies, gRPC or policies.
Read `contract` next, then `custody`.
"""
