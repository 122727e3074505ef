"""The PKI of a Vault or an OpenBao as an issuer: a CSR goes out, never a key."""
