"""The PKI engine of HashiCorp Vault or OpenBao as an issuer. A request contains a CSR.

It never sends a private key.
"""
