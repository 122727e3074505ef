"""The contract of a sidecar driver: interface, inputs and lifetime.

`driver` has the protocol to implement. `contexts` has the inputs of `start` (the control plane), and `pod`
has the inputs of `patch` (injection). `lifetime` and `events` are for a running driver, `health` for probes,
`errors` for failures. `selection` chooses a driver and its images. docs/extend/drivers.md shows how to write
a driver.

The package never names a driver.
"""
