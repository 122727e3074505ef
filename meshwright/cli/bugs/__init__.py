"""What a maintainer needs of an installation that is not well, in one archive, and no secret in it.

`gathered` asks for it, `concealed` takes out what is secret, `archive` writes it.
"""
