"""Vocabulary of the mesh: identities, services, workloads, policies and configuration as values.

Every other part of Meshwright reads and compares these values: sources produce them from manifests and
clusters, the catalog decides with them, and sidecar drivers translate the result. All are immutable,
comparable and hashable, so that changes are found by comparison and threads can share values.
- `service`, `workload`, `identity`, `names`: the participants.
- `matching`: matches of requests. `policies`: the policies of SMI, of Open Service Mesh and our own.
- `config`, `long_lived`: settings for the whole mesh.
- `kinds`, `objects`, `origins`: the objects behind the values, and the places where they were read.
- `problems`: mistakes in objects, for the people who must correct them.
- `values`, `terminal`: containers with fast comparison, and text made safe for a terminal.
The package depends on the standard library alone, and never reads a file, knows a proxy or a protocol, or
imports another package of ours. Continue with `service` and `workload`.
"""
