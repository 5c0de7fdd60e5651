"""Download of a model that the user names by its address on the web.

The size, the time and the number of redirects are bounded. A name or a redirect never leads into a
private network: the connection goes to the address that was checked.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from loopscope.errors import EngineError, shorten

MAX_BYTES = 2**31
MAX_SECONDS = 600.0
_MAX_REDIRECTS = 5
_SECONDS_PER_READ = 30.0
_CHUNK = 1 << 18
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DEFAULT_NAME = "model.onnx"


def is_web_address(text: str) -> bool:
    """Return True for an address that begins with https:// or http://."""
    return text.lower().startswith(("https://", "http://"))


@dataclass(frozen=True, slots=True)
class Download:
    """A download into a folder, with its limits."""

    folder: Path
    allowed_hosts: Collection[str] = ()
    """Hosts that may have a private address."""
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS

    def model(self, address: str) -> Path:
        """Download a model; return the path of its file.

        The weights (.bin) of an OpenVINO IR are downloaded from beside it. Raise ``EngineError`` if
        the address is refused, does not answer, or exceeds a limit.
        """
        deadline = time.monotonic() + self.max_seconds
        path = self._save(address, deadline)
        if path.suffix.lower() == ".xml":
            parts = urlsplit(address)
            weights = parts._replace(path=f"{parts.path[:-4]}.bin").geturl()
            self._save(weights, deadline)
        return path

    def _save(self, address: str, deadline: float) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", unquote(urlsplit(address).path.rpartition("/")[2]))
        path = self.folder / (name.lstrip(".")[-100:] or _DEFAULT_NAME)
        with path.open("wb") as file:
            for chunk in self._chunks(address, deadline):
                file.write(chunk)
        return path

    def _chunks(self, address: str, deadline: float) -> Iterator[bytes]:
        """Yield the bytes of an address; follow redirects."""
        named_host = _host(_parts(address))
        for _ in range(_MAX_REDIRECTS + 1):
            parts = _parts(address)
            connection: http.client.HTTPConnection | None = None
            try:
                connection = self._connected(parts, is_named=_host(parts) == named_host)
                target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
                with _shut_down_at(deadline, connection):
                    connection.request("GET", target, headers={"User-Agent": "loopscope"})
                    with connection.getresponse() as response:
                        if response.status not in _REDIRECTS:
                            yield from self._bounded(response, address, deadline)
                            return
                        address = urljoin(address, response.headers.get("Location", ""))
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() >= deadline:
                    raise EngineError(
                        f"{shorten(address, 200)}: the download took more than "
                        f"{self.max_seconds:g} s; download it yourself and open the file"
                    ) from None
                reason = str(error) or type(error).__name__
                raise EngineError(
                    f"{shorten(address, 200)}: it cannot be downloaded ({shorten(reason, 100)})"
                ) from None
            finally:
                if connection is not None:
                    connection.close()
        raise EngineError(
            f"{shorten(address, 200)}: more than {_MAX_REDIRECTS} redirects, expected a file"
        )

    def _bounded(
        self, response: http.client.HTTPResponse, address: str, deadline: float
    ) -> Iterator[bytes]:
        """Yield the bytes of a response.

        Raise ``HTTPException`` if it is not complete at the deadline, and ``EngineError`` for a
        status other than 200 or too many bytes.
        """
        if response.status != 200:
            raise EngineError(
                f"{shorten(address, 200)}: the server answers {response.status} "
                f"{shorten(response.reason, 60)}"
            )
        size = 0
        while chunk := response.read(_CHUNK):
            size += len(chunk)
            if size > self.max_bytes:
                raise EngineError(
                    f"{shorten(address, 200)}: it has more than {self.max_bytes:,} bytes; download "
                    "it yourself and open the file"
                )
            yield chunk
        if response.length or time.monotonic() >= deadline:
            raise http.client.HTTPException(f"it ends after {size:,} bytes")

    def _connected(self, parts: SplitResult, *, is_named: bool) -> http.client.HTTPConnection:
        """Return a connection to a host whose address was checked.

        ``is_named``: the user named this host; a redirect may lead to another one.
        """
        host, port = _host(parts), parts.port or _DEFAULT_PORTS[parts.scheme]
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise EngineError(f"{host}: there is no such host ({error.strerror})") from None
        ip = str(answers[0][4][0])
        is_allowed = host in self.allowed_hosts or (is_named and _is_address(host))
        if not is_allowed and not ipaddress.ip_address(ip.partition("%")[0]).is_global:
            raise EngineError(
                f"{host} is the address {ip} of a private network: add --allow-host {host} if you "
                "mean it"
            )
        if parts.scheme == "http":
            connection = http.client.HTTPConnection(host, port, timeout=_SECONDS_PER_READ)
            connection.sock = socket.create_connection((ip, port), _SECONDS_PER_READ)
            return connection
        context = ssl.create_default_context()
        secure = http.client.HTTPSConnection(host, port, timeout=_SECONDS_PER_READ, context=context)
        plain = socket.create_connection((ip, port), _SECONDS_PER_READ)
        secure.sock = context.wrap_socket(plain, server_hostname=host)
        return secure


@contextmanager
def _shut_down_at(deadline: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Shut a connection down at a time of the monotonic clock.

    The timeout of a read does not end a server that sends one byte at a time.
    """

    def shut_down() -> None:
        with suppress(OSError):  # the connection ended at the same time
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    sock = connection.sock
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _parts(address: str) -> SplitResult:
    """Return the parts of an address; ``EngineError`` for any other text."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError for a port that is not a number
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        raise EngineError(
            f"{shorten(address, 200)} is not an address, expected https://HOST/PATH without a user"
        )
    if re.search(r"[\s\x00-\x1f\x7f]", address):
        raise EngineError(
            f"{shorten(repr(address), 200)}: expected an address without spaces and control "
            "characters"
        )
    return parts


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".").lower()


def _is_address(host: str) -> bool:
    """Return True for an IP address and for localhost, which a user cannot name by mistake."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
