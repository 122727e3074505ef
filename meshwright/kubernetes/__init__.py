"""Meshwright's part inside a Kubernetes cluster: webhooks, sidecars in Pods, conditions and Events, CNI.

    admission  the webhook that reviews objects before the API server stores them
    injection  the webhook that adds sidecars to Pods, and the credentials of the Pods
    status     conditions and Events: the outcome of each object
    cni        the daemon and the plug-in of a node, which set the interception rules of Pods

For example, `kubectl apply` of a TrafficTarget is first reviewed by `admission`, and a problem that appears
later is reported by `status`. All four use the client in `meshwright.kube`. This package never reads the mesh
from a cluster: `meshwright.providers.kubernetes` does.
"""
