"""The rotation of the mesh's root while the mesh is running.

A root cannot be replaced at once: a proxy without trust in the new root would refuse peers and the control
plane. So the change has three stages, and each begins only when all proxies and all parts of the server are
ready.
- `rotation`: the stages as a value. Start here.
- `evidence`, `proxy_evidence`, `status`: the roots that each proxy and the server trust and show, and the
  parties that block the next stage.
- `proxy_facts`, `server_report`: the same for several servers of one mesh, each with a part of the proxies.
- `authority_state`, `authority_store`: the stored state as one value, and the interface of its store. Files
  are in `certs.authority_files`.
- `authority`, `succeeding_authority`: the Authority during the change.
- `declared_roots`, `secrets`: roots declared by MeshRootCertificate objects.
- `first_proxy`, `role_succession`: other parts of the stored state.
The package never asks a proxy: the roots trusted by proxies and the certificates presented by them are
arguments. It never opens a file.
"""
