"""The gRPC edge: discovery over mutual TLS, and limits on the cost of clients.

`ads` has the server, `listener` its port and TLS, `auxiliary` and `client_status` the health and status
services. The package `streams` serves single calls. Decisions about resources are made in `xds.protocol`;
this package only moves bytes, identifies clients and ends calls. Read `ads` next, then
`streams.conversation`.

The package never decides which resources a client gets: `xds.cache` has the snapshots.
"""
