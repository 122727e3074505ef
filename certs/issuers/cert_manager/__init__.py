"""cert-manager as an issuer, by CertificateRequests. A request contains a CSR.

    requests     the CertificateRequest to create              (values)
    responses    the state of a request and of its issuer      (values)
    client       create, watch and remove requests             (the API server)
    loop_thread  the event loop for the client                 (a thread)
    issuer       the contract of an issuer, as blocking calls

cert-manager does not publish the roots of an issuer. The roots are read from signed certificates, or from a
file. The package never sends a private key. Start with `issuer`.
"""
