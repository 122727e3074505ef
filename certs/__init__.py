"""Keys, the certificate authority, the certificates it issues and the ledger of them.

- `keys` makes and reads keys, certificates and requests. It and its neighbours are the only users of
  `cryptography`.
- `issuers` signs: the built-in CA, a CA in files, Vault, and cert-manager. `contract` is their common
  interface.
- `ledger` records every proxy certificate and its revocation. `peer` checks a connecting proxy against it.
- `state` has the files of the state directory, and `roots` the change from one root to the next.
- `custody` opens CA and ledger together; `manager` keeps one certificate for each service identity.

A private key's bytes never reach a log, an error or a repr. Time is always an argument, so that expiry and
renewal are tested without waiting. The package has no notion of proxies' configuration, gRPC or policies.
Read `contract` next, then `custody`.
"""
