"""Enrolment: machines get the certificate of their proxy, and renew it, without manual work.

A machine sends a proof and a certificate signing request, and gets a certificate for the name that the proof
entitles to. There are two gRPC ports: the joining port, for machines without a certificate, and the renewal
port with mTLS. At the renewal port machines also report ejected endpoints and counted calls.

`server` and `methods` are the gRPC edge, `service` handles one request, and `proofs/` judge the kinds of
proof. `store/` keeps join tokens; `tokens`, `limits`, `entry`, `readmission`, `trust`, `ejections` and
`reports` are values and decisions about them. Every signature goes by way of the ledger, so a revoked machine
cannot join again.

The package has a token's secret only while the token is read. Read next: `service`, then `proofs.contract`.
For users: docs/start/vm.md.

Enrolment never knows discovery or a proxy's configuration, and never receives a private key.
"""
