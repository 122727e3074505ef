"""Keys, certificates, signing requests and trust bundles as values: creation and parsing.

Every other part of `certs` uses these values. The package never writes a file, and has no clock or network.
- `pair`: a certificate with its key, issued and checked against the request.
- `leaf`, `pem`: parsing of certificates from others. All errors of the library become ValueError.
- `bundle`: sets of roots, comparable by their bytes.
- `material`: certificates and `PrivateKey`, with bytes hidden from printing.
- `profile`, `serial`: names, usages and serials of our certificates.
- `signing_request`, `proof_of_possession`: proofs of possession of the private key.
Continue with `pair`.
"""
