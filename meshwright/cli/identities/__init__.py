"""Certificates and join tokens for the command line.

Every operation works in two ways: by a request to the running server, or, without a server, in the state
directory itself. `issuing.by_either` chooses. `revocation` and `tokens` build on `issuing`; `certificates`
selects entries of a list, and `sealing` encrypts the keys of a stopped server.

The package never prints a private key. Read next: `issuing`.
"""
