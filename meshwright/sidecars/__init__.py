"""Sidecar drivers: what turns a ProxyPolicy into the configuration of one kind of proxy, and serves it.

The contract is in `driver`, with what a driver is given in `contexts` and `pod`; `registry` finds drivers,
`selection` chooses among them, `lint` says what does not fit. `injection` is what every driver's `patch` has
in common. Each kind of proxy has a package of its own. It will never decide policy: that is the catalog's.
"""
