"""Replacement of the mesh's own root while the mesh is running.

A root cannot be replaced at once: a proxy that does not trust the new root would refuse its peers and the
control plane. So the change has three stages, and each begins only when nobody holds it back.
- `rotation`: the stages as a value. Start here.
- `evidence`, `proxy_evidence`, `status`: what each proxy and the server trust and show, and who blocks the
  next stage.
- `rotation_file`: the folders and `rotation.json`, recovered after a crash.
- `authority`, `succeeding_authority`: the Authority that signs meanwhile.
- `declared_roots`, `secrets`: roots that MeshRootCertificate objects declare.
The package does not talk to proxies: what they trust and show is passed in as values.
"""
