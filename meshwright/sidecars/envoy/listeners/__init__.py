"""Listeners (LDS): one module for each direction, and the filter chains that they share.

`listener` explains the layout of listeners and sockets, `inbound` and `outbound` make them, `outside` adds
egress, and `chains` and `connection_manager` make the filters. The input is a `ProxyPolicy`; the package
never reads a manifest.
"""
