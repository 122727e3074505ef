"""cert-manager as an issuer, asked with CertificateRequest objects; only CSRs are sent, never a key.

- `requests`: the objects to create (values).
- `responses`: their outcome, and the state of the issuer (values).
- `client`: objects created, watched and removed at the API server.
- `loop_thread`: a thread with the event loop of the client, because issuers are blocking.
- `issuer`: the Issuer itself. Start here.
cert-manager does not publish the roots of an issuer. They are read from what it signs, or from a file.
"""
