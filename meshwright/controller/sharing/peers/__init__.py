"""The port at which the servers of one mesh ask each other, with mutual TLS below the mesh's CA.

- `tls`: the certificate of this server, and the TLS contexts of both sides.
- `address`: the address at which this server listens, and the one that it announces.
- `client`: questions to the other servers.
- `guard`: who may ask, and how many questions at a time.
- `door`: the port itself.
- `acts`: acts of this server at the others.
- `leader_works`: works of the leader that need the other servers.
- `parts`: everything together. Start here.

No proxy waits for the port, and no answer is waited for longer than `client.SECONDS`. A question of another
server is answered from this server alone, so questions can never go in circles.
"""
