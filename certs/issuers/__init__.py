"""Who signs: the contract with an issuer, and the mesh's own certificate authority."""
