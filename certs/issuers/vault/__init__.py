"""The PKI engine of HashiCorp Vault or OpenBao as an issuer. A request contains a CSR.

Meshes with a company CA in Vault can have service certificates signed there. A Vault may be slow, sealed or
unreachable, and tokens end; the modules separate these concerns.
- `http`: calls to the HTTP API, with errors free of secrets.
- `login`: a token, an AppRole or a Kubernetes ServiceAccount, renewed before the token ends.
- `responses`: parsing of answers.
- `issuer`: the Issuer itself. Start here.
The package never sends a private key. Calls block, so callers run them in threads and never on the event
loop.
"""
