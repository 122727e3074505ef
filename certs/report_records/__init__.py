"""Reports of the servers of one mesh in a root rotation, in records that they share.

- `store`: writes the report of this server, and reads those of the others. Start here.
- `sidecar_reports`: which sidecars of a server lack the roots of a new issuer.
- `server_records`: the records of all servers, as this server has followed them.
- `fields`: the fields of a report, and the compact form of the facts about proxies.
The package never decides about a step: `certs.roots.server_report` does.
"""
