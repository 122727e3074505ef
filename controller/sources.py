"""Where the mesh is read from: a directory of manifests, and the DNS for the services that name it."""

from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime, timedelta

from controller.dns_answers import DnsAnswers
from controller.settings import Settings
from providers.contract import EndpointProvider
from providers.directory.source import DirectorySource
from providers.dns.asking import Resolver
from providers.dns.schedule import Pacing
from providers.dns.source import DnsSource
from providers.dns.wanted import DnsWanted


class Sources:
    """The sources of one server; where two of them contradict each other the directory wins."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        hold = timedelta(seconds=settings.empty_answer_hold_seconds)
        floor, ceiling = settings.dns_floor_seconds, settings.dns_ceiling_seconds
        answers = DnsAnswers(settings.state)
        self.directory = DirectorySource(settings.mesh, clock, hold=hold)
        self.dns = DnsSource(
            Resolver(settings.dns_nameservers, settings.dns_timeout_seconds),
            clock,
            pacing=Pacing(timedelta(seconds=floor), timedelta(seconds=ceiling)),
            hold=hold,
            kept=answers.read(),
            keep=answers.write,
        )
        self._wanted = DnsWanted()

    @property
    def providers(self) -> tuple[EndpointProvider, ...]:
        """Return those that know endpoints, the one that wins first."""
        return (self.directory, self.dns)

    def follow(self) -> None:
        """Let the DNS be asked for what the objects name now."""
        self.dns.want(self._wanted.follow(self.directory.objects()))

    def works(self, changed: Callable[[], None]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name."""
        yield "mesh source", self.directory.run(changed)
        yield "DNS source", self.dns.run(changed)
