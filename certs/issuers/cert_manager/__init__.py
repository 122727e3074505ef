"""cert-manager as an issuer: it is asked by CertificateRequests, in which a CSR goes out and never a key.

requests  what is asked for, as an object        (values)
answers   what became of it, and of the issuer   (values)
asking    objects made, watched and removed      (the API server)
beside    the event loop on which that is done   (a thread)
issuer    the contract, blocking
"""
