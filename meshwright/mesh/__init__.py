"""The nouns of a mesh: identities, services, workloads, policies, configuration.

Values only: immutable, comparable and hashable, on the standard library alone. The package never reads a
file, knows a proxy or a protocol, or imports another package of ours.
"""
