"""The composition root: settings, the wiring of all components, the process and its tasks.

    app.run -> lock, CA, issuer -> wiring.join (parts/) -> Server.run: probes, pages, first wave, drivers

`app` checks the state directory and opens the CA. `wiring` makes the parts as five records (`parts/`), each
from the records before it. `server` starts them in order: probes answer first, then the mesh is read, then
proxies are served. It stops them in the reverse order. `settings/` reads the configuration, and `process/`
has the parts for any long-running process.

Rules of meshes, protocols and certificates belong to the packages joined here. Read next: `app`,
`server`.

The package never defines a rule of the mesh, of a protocol or of a certificate: the joined packages do.
"""
