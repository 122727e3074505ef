"""The nouns of a mesh: identities, services, workloads, policies, configuration.

Values only, all immutable, comparable and hashable, on the standard library alone. It will never read
a file, know a proxy or a protocol, or import another package of ours.
"""
