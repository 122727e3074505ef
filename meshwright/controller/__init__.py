"""The composition root: it makes every part of a server, joins the parts, runs them, and ends them in order.

It imports every other component. It never defines a rule of the mesh, of a protocol or of a certificate: the
packages that it joins do. Its own folders carry out decisions, for example `roots` the steps of a rotation.
"""
