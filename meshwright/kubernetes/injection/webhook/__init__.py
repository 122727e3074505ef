"""The injection webhook: its registration, reviews and answers.

    registration  the MutatingWebhookConfiguration
    server        the HTTP path, with time limits and counts
    lookup        the namespace of a Pod, and the API server's version
    review        the answer: a JSON patch or a refusal

A Pod that must have a sidecar is refused if the webhook fails, because without the sidecar the Pod's traffic
would bypass the mesh. This package never decides: `meshwright.kubernetes.injection.decision` does.
"""
