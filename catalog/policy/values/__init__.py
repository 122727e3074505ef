"""The values of a policy, in mesh terms: the input of a driver for one group of proxies.

`proxy.ProxyPolicy` holds all others: `inbound` and `outbound` calls, `destinations`, hosts `outside` the
mesh, and the `terms` of the whole mesh. It never reads the view: the other modules of `catalog.policy` make
the values.
"""
