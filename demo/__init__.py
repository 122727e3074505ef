"""The bookstore demo on one machine: a mesh to watch, to edit, and to check against an acceptance matrix.

    python -m demo           live view; edit the manifests and watch the effect
    python -m demo --once    walk the acceptance matrix and exit

`bookstore` starts the control plane, the sidecars and the programs (`apps/`) in this order. Sidecars get
their traffic by transparent interception (`transparent`: network namespaces and iptables) or by explicit
interception (`explicit`: loopback addresses). `display/` shows the running mesh. `walk` changes the manifests
phase by phase and checks each cell of `matrix` with real requests. `supervisor` and `leftovers` make sure
every process ends. `kubernetes/` runs the same bookstore in Pods.

The demo uses Meshwright from outside, as a user would: by commands, by the Unix socket and by files in the
mesh directory. It imports only the value types of `meshwright.mesh` and never any other part of the control
plane, and the control plane never imports the demo. Read next: `topology`, then `bookstore`.
"""
