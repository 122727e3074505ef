"""The rotation of the mesh's root while the mesh is running.

A root cannot be replaced at once: a proxy that does not trust the new root would refuse its peers and the
control plane. So the change has three stages, and each begins only when no proxy and no part of the server
blocks it.
- `rotation`: the stages as a value. Start here.
- `evidence`, `proxy_evidence`, `status`: what each proxy and the server trust and show, and which of them
  block the next stage.
- `rotation_file`: the folders and `rotation.json`, recovered after a crash.
- `authority`, `succeeding_authority`: the Authority that signs meanwhile.
- `declared_roots`, `secrets`: roots that MeshRootCertificate objects declare.
The package never asks a proxy: the roots that proxies trust and the certificates that they present are
arguments.
"""
