"""Service certificates for the identities of the mesh, and problems with their issuance.

An issuer (`certs.contract.Issuer`) signs; this package only decides which certificates are needed, and when.
"""
