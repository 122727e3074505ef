"""Interfaces for people and programs: JSON API, debug pages, metrics, health and the Unix socket.

A request takes one path through the package. `http` has the servers and their guards. A route of `api` or a
page of `pages` computes a JSON document from the protocols of `readers`, which are the only view of the rest
of the server. The document is sent as JSON, or rendered by `html`. For example, `/debug/proxy` and
`/api/v1/proxies` share one document, so a page and the API never disagree.

The package never decides anything about the mesh, and never shows a private key or a secret: `jsonable`
refuses bytes and every unknown type. Read `readers`, then `pages.site` and `api.routes`.
"""
