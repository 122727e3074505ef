"""What Meshwright does inside a Kubernetes cluster: webhooks, sidecars in Pods, conditions and Events, CNI.

    admission  the webhook that judges objects before they are stored
    injection  the webhook that gives Pods their sidecars
    status     conditions and Events: what became of each object
    cni        the node's daemon and plug-in, which set the rules of Pods

It never reads the mesh from a cluster: that is `meshwright.providers.kubernetes`.
"""
