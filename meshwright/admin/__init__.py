"""Interfaces for people and programs: JSON API, debug pages, metrics, health and the Unix socket.

    readers -> pages (a JSON document) -> html (a page) -> http (guards, servers) -> browser
                                       -> api (reduced to its shape)             -> program

A page and a path of the API share one document, for example `/debug/proxy` and `/api/v1/proxies`, so the two
never disagree. The protocols of `readers` are the only view of the rest of the server. `metrics` and `spans`
export the state of the server to other programs.

The package never decides anything about the mesh, and never shows a private key or a secret: `jsonable`
refuses bytes and every unknown type. Read next: `readers`, then `pages.site` and `api.routes`.
"""
