"""Where join tokens are kept: the contract, and a file."""
