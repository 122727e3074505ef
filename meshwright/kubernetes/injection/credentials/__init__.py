"""The ConfigMap and the Secret by which a Pod trusts and joins the control plane.

    pod_roots      the ConfigMap with root certificates: its content and its namespaces
    roots_writer   writes this ConfigMap in each namespace with sidecars
    pod_secrets    the Secret with a Pod's certificate: its content and its next step
    secret_writer  creates, renews and deletes these Secrets

With `identity: token` a Pod needs only the ConfigMap, and with `identity: secret` only the Secret. This
package never decides about sidecars; it follows the decision.
"""
