"""Service certificates for the identities of the mesh, and problems with their issuance.

It decides which certificates are needed, and when. It never signs: an issuer (`certs.contract.Issuer`) does.
"""
