"""What entitles a machine to a certificate: the contract, and the kinds of proof there are."""
