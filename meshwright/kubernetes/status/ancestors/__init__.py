"""The status of BackendTLSPolicies: one entry in `status.ancestors` for each gateway that uses a target.

    entries  entries as values, read from and merged into the status of an object
    changes  follows the states of `catalog.relations.backend_tls`
    writer   reads a policy, changes the entries of Meshwright, and writes the status back

Other controllers write entries into the same list, so the list is changed by read, modify and write. This
package never decides which policy is in force.
"""
