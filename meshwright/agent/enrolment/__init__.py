"""Enrolment: the agent's part in joining a mesh and renewing its certificate.

The agent keeps the files and decides the times (`certificate_keeper`, `times`, `files`). Everything that
needs gRPC or reads certificates runs in a subprocess (`program`, `client`, `pinning`), so that the agent
stays small.

A private key never leaves the machine.
"""
