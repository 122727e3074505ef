"""The contract of a sidecar driver: its interface, its inputs, and its lifetime.

`driver` has the protocol to implement. `contexts` has the inputs of `start` (the control plane), and `pod`
those of `patch` (injection). `lifetime` and `events` are for a running driver, `health` for its probes,
`errors` for its failures. `selection` chooses a driver and its images. docs/drivers.md shows how to write a
driver.

The package never names a driver.
"""
