"""The PKI of a HashiCorp Vault or an OpenBao as an issuer; only CSRs are sent, never a key.

Meshes that have a company CA in Vault can have service certificates signed there. A Vault may be slow, sealed
or away, and its tokens end; the modules keep that apart.
- `http`: calls to the HTTP API, with errors that contain no secret.
- `login`: a token, an AppRole or a Kubernetes ServiceAccount, renewed before the token ends.
- `responses`: parsing of answers.
- `issuer`: the Issuer itself. Start here.
Calls block, so that they run in threads and never on the event loop.
"""
