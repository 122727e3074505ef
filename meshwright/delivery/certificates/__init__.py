"""Service certificates for the identities that the mesh needs, and problems of issuing them.

It never signs: an issuer does.
"""
