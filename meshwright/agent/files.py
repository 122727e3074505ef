"""The files of one proxy: credentials and the override of the bootstrap, read and brought into use."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from certs.errors import CertificateError, StateError
from meshwright.agent import credential_check as reading
from meshwright.agent import credentials
from meshwright.agent.credentials import CredentialFacts, Credentials, CredentialsError
from meshwright.agent.envoy.command import environment
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import CheckUnfinished, Supervisor, validated
from meshwright.agent.errors import AgentError
from meshwright.agent.file_watch import changes
from meshwright.agent.settings import AgentSettings
from meshwright.agent.subprocess_call import ApartFailed
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings

UNUSABLE = (AgentError, CertificateError, OSError, ValueError)
"""Errors from files written by others, and from Envoy. After any of these the state in use stays."""

_log = structlog.get_logger("agent")


class ProxyFiles:
    """Reads the files of a proxy when they change, and brings usable changes into use.

    `shows` is the content of the certificate in use, None before the first. `taken` counts certificates
    brought into use, and `refused` unusable changes.
    """

    def __init__(self, settings: AgentSettings, runtime: RuntimeDirectory, supervisor: Supervisor) -> None:
        self._settings = settings
        self._runtime = runtime
        self._supervisor = supervisor
        self.shows: CredentialFacts | None = None
        self.taken = 0
        self.refused = 0
        self._unread = 0
        self._text = ""
        self._looking = asyncio.Lock()

    async def watch(self) -> None:
        """Read the credential files and the override whenever they change, until cancelled."""
        directories = {self._settings.credentials}
        if self._settings.override is not None:
            directories.add(self._settings.override.parent)
        # The first check finds the files that `start` has read, or a change since then.
        async for _ in changes(sorted(directories), self._digest, self._settings.look_seconds):
            await self.look()

    async def look(self, change: Callable[[], None] = lambda: None) -> bool:
        """Apply `change` to the files, then bring new content into use; return whether it is usable."""
        async with self._looking:
            try:
                await asyncio.to_thread(change)
                await self.take_new()
            except UNUSABLE as error:
                self.refused += 1
                _log.error(
                    "changed files rejected; the files in use stay", reason=" ".join(str(error).split())
                )
                return False
        return True

    async def take_new(self) -> None:
        """Read the files and bring changes into use.

        Certificates at once, a bootstrap by a new Envoy epoch.
        """
        settings = self._settings
        try:
            read = await reading.read(
                settings.credentials, shared=settings.shared_credentials, configured=settings.trust_domain
            )
        except ApartFailed:
            self._unread += 1  # as in `_tried_again`
            raise
        with self._tried_again():
            if not self._is_in_use(read):
                await asyncio.to_thread(self._runtime.put_credentials, read)
                self.taken += 1
                _log.info("certificate loaded", proxy=str(read.name), serial=read.serial)
        self.shows = read.shows
        override = self._override()
        with self._tried_again():
            await self._bring_into_use(self._bootstrap(read), override, read)

    async def _bring_into_use(
        self, settings: BootstrapSettings, override: str | None, read: Credentials
    ) -> None:
        text = await asyncio.to_thread(self._runtime.propose, settings, override, self._text)
        if text != self._text:
            # Validated before the change, because a faulty override must not end the Envoy in use.
            await validated(self._settings.envoy, self._runtime)
            self._runtime.accept()
            self._text = text
            digest = hashlib.sha256(text.encode()).hexdigest()
            await self._supervisor.configured(digest, environment(os.environ, read.name))

    @contextlib.contextmanager
    def _tried_again(self) -> Iterator[None]:
        """Have the next check try again after a failure that is not the files', for example of a full disk.

        The count is part of the digest, so the check finds a change although the files are the same.
        """
        try:
            yield
        except (OSError, StateError, CheckUnfinished):
            self._unread += 1
            raise

    def in_use(self) -> CredentialFacts:
        """Return the content of the certificate in use; raise CredentialsError before the first one."""
        if self.shows is None:
            raise CredentialsError("no certificate is in use yet")
        return self.shows

    def _digest(self) -> str:
        """Return a digest of the files; a failure that is not theirs changes it too, for another try."""
        directory = self._settings.credentials
        result = f"{credentials.digest(directory)} {credentials.written_beside(directory)!r} {self._unread}"
        try:
            return f"{result} {self._override()}"
        except (OSError, ValueError):  # an unreadable override is reported when it is used
            return result

    def _override(self) -> str | None:
        return None if self._settings.override is None else self._settings.override.read_text("utf-8")

    def _is_in_use(self, read: Credentials) -> bool:
        return credentials.digest(self._runtime.credential("")) == read.digest

    def _bootstrap(self, read: Credentials) -> BootstrapSettings:
        settings = self._settings
        return self._runtime.settings(
            BootstrapSettings(
                proxy_name=read.name,
                trust_domain=read.trust_domain,
                ads=settings.ads,
                certificate_file=Path(),
                key_file=Path(),
                ca_file=Path(),
                admin=settings.admin_at,
                protocol=settings.protocol,
            )
        )
