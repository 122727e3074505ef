"""SMI's kinds, in every published version that users have."""
