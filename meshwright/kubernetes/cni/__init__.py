"""The node's part of injection: a CNI plug-in that has rules set in a pod's network, before it begins.

On the host stands as little as can: a relay (`meshwright.kubernetes.cni.relay`), with an interpreter of its
own, behind the plug-ins of the network that is there. It asks the daemon over a socket, which knows the pod,
and sets the rules. It will never keep a pod from running that is not ours, or change what others have written
of networks.
"""
