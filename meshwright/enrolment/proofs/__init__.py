"""Proofs that entitle a machine to a certificate: the contract, and the kinds of proof.

The package never issues a certificate.
"""
