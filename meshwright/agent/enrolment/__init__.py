"""Enrolment: the agent's part in joining a mesh and renewing the proxy's certificate.

The agent keeps the files and decides the times (`certificate_keeper`, `times`, `files`). All code that needs
gRPC or reads certificates runs in a subprocess (`program`, `client`, `pinning`), so that the agent stays
small.

A private key never leaves the machine.
"""
