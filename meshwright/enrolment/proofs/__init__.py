"""Proofs that entitle a machine to a certificate: the contract, and the kinds of proof.

It never issues a certificate.
"""
