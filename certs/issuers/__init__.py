"""Issuers of certificates: the mesh's own CA, a CA in files, Vault, and cert-manager.

`certs.contract` has the common interface. `authority` is the CA with its key in this process. `root` makes
and parses a CA, `stored_ca` is a CA as it is stored, and `ca_folder` has its files. `succeeding_issuer` wraps
every issuer, so certificates of a former issuer stay trusted until they end.

The package never decides which certificates are needed.
"""
