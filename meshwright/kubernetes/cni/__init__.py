"""Interception on a node: a CNI plug-in and a daemon, which sets the rules of a Pod before the Pod starts.

The host has only a small relay (`meshwright.kubernetes.cni.relay`) with its own interpreter, as the last
plug-in of the network. The relay asks the daemon over a socket; the daemon asks the API server for the Pod,
and sets the rules. It never delays or stops a Pod outside the mesh, and never changes other entries of the
network's configuration.
"""
