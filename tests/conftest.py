"""How properties are tried: the same examples in every run, in whatever time a busy machine takes.

`pytest --hypothesis-profile=fresh` tries others each time, for who looks for what nobody has found yet.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("fresh"), derandomize=True, print_blob=True)
settings.load_profile("steady")
