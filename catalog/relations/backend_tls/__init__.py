"""BackendTLSPolicies: which decides about a Service's port, and the verdicts about each policy.

The one derivation for policy, status, lint and explain. The package never decides about requests:
`catalog.policy` does.

- `decision`: the policy for a port of a Service, and the TLS that follows.
- `states`: the gateways that use the targets of a policy, and its state there.
"""
