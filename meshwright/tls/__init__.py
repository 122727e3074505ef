"""PEM contents for TLS, checked before anything uses them.

gRPC ends the whole process if the certificate or the key of a client is empty, for example while another
program replaces the files. For other unusable contents it reports only that no connection could be made.

- `contents`: CA certificates, certificate and key, checked by OpenSSL. Start here.
- `grpc_channel`: credentials of a gRPC channel, only from checked contents.
- `matching`: a certificate chain and its key as a pair. `pem`: parsing of certificates from others.
- `key_pair`: loading of a certificate and a key from memory into a context of the `ssl` module.

The package never knows the two ends of a connection.
"""
