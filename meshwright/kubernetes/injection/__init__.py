"""Sidecar injection: adds sidecars to Pods, in a webhook and in files.

    configuration/  the configuration of injection, and overlays of a sidecar
    selectors       label selectors
    namespaces      labels and annotations of a namespace
    decision        whether a Pod gets a sidecar, and why
    explanation     the same for people; comparison: a running Pod beside the same Pod injected again
    pod_injection   a Pod in, the patched Pod out (by `meshwright.sidecars.injection`)
    shapes          the shape of a Pod, checked; api_defaults: defaults of its fields
    manifests       the same for controllers of Pods, in files
    credentials/    the ConfigMap and the Secret by which a Pod trusts and joins the control plane
    webhook/        reviews, answers, and the MutatingWebhookConfiguration

For example, a new Pod in a namespace with the label `meshwright.dev/inject: "true"` reaches `webhook.server`,
which asks `decision`, lets `pod_injection` patch the Pod, and answers with a JSON patch.

Only `webhook.server`, `webhook.lookup` and the two writers of `credentials` do input and output. The package
never reads a file, and never decides what a sidecar may do. Read next: `decision`, then `pod_injection`.
"""
