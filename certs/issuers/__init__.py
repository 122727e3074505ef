"""Issuers of certificates: the mesh's own CA, a CA in files, Vault, and cert-manager.

`certs.contract` has the common interface. `authority` is the CA with its key in this process, and `root` has
the files of this CA. `succeeding_issuer` wraps every issuer, so certificates of a former issuer stay trusted
until they end.

The package never decides which certificates are needed.
"""
