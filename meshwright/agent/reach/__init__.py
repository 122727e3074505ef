"""Diagnosis of the connection between a sidecar and the control plane: the cause and the remedy.

`observations` records each step on the way to the control plane, and `reasons` derives one reason of a closed
set with a sentence; both are pure. `probing` makes the steps, with the proxy's own credentials.
`connection_watch` starts a diagnosis when Envoy loses the control plane.

The package never opens a discovery stream.
"""
