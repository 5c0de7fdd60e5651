"""Rules for requests that reach the server: accepted hosts and origins, response headers, time
limits.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import h11
from streamlit import App
from uvicorn.protocols.http.h11_impl import H11Protocol

from loopscope.errors import shorten
from loopscope_app.state.launch import LOOPBACK

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MOST_SECONDS_OF_A_HEAD = 20.0
"""Seconds in which the request line and the headers must arrive."""
BYTES_PER_SECOND_OF_A_BODY = 500
"""Slowest pace of an upload; each 500 bytes extend the time limit by one second."""
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


def headers(frame_origins: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the headers of every response.

    Only pages of this server's origin, and of ``frame_origins``, can show the app in a frame.

    >>> headers(())
    (('X-Frame-Options', 'SAMEORIGIN'), ('Content-Security-Policy', "frame-ancestors 'self'"))
    >>> headers(["vscode-webview:"])
    (('Content-Security-Policy', "frame-ancestors 'self' vscode-webview:"),)
    """
    ancestors = " ".join(("frame-ancestors 'self'", *frame_origins))
    same_origin = () if frame_origins else (("X-Frame-Options", "SAMEORIGIN"),)
    return (*same_origin, ("Content-Security-Policy", ancestors))


@dataclass(frozen=True, slots=True)
class Visitors:
    """Names by which browsers may reach this server."""

    names: frozenset[str] = LOOPBACK
    addresses: bool = False
    """True if a Host that is an IP address is accepted: no name server can redirect it."""
    origins: frozenset[str] = frozenset()
    """Names that a proxy serves: an Origin with such a name need not equal the Host."""

    def refusal(self, hosts: list[str], origins: list[str]) -> str:
        """Return the reason to refuse a request with these headers, or an empty text.

        >>> Visitors().refusal(["localhost:8501"], ["http://localhost:8501"])
        ''
        >>> Visitors().refusal(["evil.example:8501"], [])
        "the Host 'evil.example:8501' is not a name of this server: use localhost"
        >>> Visitors().refusal(["localhost:8501"], ["http://evil.example"])
        "the page 'http://evil.example' belongs to another origin than this server"
        """
        if len(hosts) != 1 or len(origins) > 1:
            return "expected one Host header and at most one Origin header"
        host = _parts(f"//{hosts[0]}")
        if (
            host is None
            or host.path
            or host.query
            or host.fragment
            or not self._is_own(_name(host))
        ):
            use = "start the server with --host-name NAME" if self.addresses else "use localhost"
            return f"the Host {shorten(hosts[0])!r} is not a name of this server: {use}"
        if origins:
            origin = _parts(origins[0])
            if origin is None or origin.scheme not in _PORTS or not self._is_same(origin, host):
                return (
                    f"the page {shorten(origins[0])!r} belongs to another origin than this server"
                )
        return ""

    def _is_own(self, name: str) -> bool:
        return name in self.names or (self.addresses and _is_address(name))

    def _is_same(self, origin: SplitResult, host: SplitResult) -> bool:
        if _name(origin) in self.origins:
            return True
        default = _PORTS[origin.scheme]
        return (_name(origin), origin.port or default) == (_name(host), host.port or default)


def visitors(*, server: bool, host_names: Iterable[str]) -> Visitors:
    """Return the names of a server for this user only, or of one for other machines."""
    if not server:
        return Visitors()
    names = frozenset(name.lower().rstrip(".") for name in host_names)
    own = frozenset({socket.gethostname().lower().rstrip(".")})
    return Visitors(LOOPBACK | own | names, addresses=True, origins=names)


def _parts(text: str) -> SplitResult | None:
    """Return a URL's parts; None if it is not one, or carries a user name."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises ValueError for a port that is not a number
    except ValueError:
        return None
    return None if not parts.hostname or "@" in parts.netloc else parts


def _name(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class GuardedApp(App):
    """The app behind the check of Host and Origin."""

    visitors = Visitors()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            hosts, origins = (
                [value.decode("latin-1") for key, value in scope["headers"] if key == name]
                for name in (b"host", b"origin")
            )
            if reason := self.visitors.refusal(hosts, origins):
                await _refuse(scope, receive, send, reason)
                return
        await super().__call__(scope, receive, send)


async def _refuse(scope: Message, receive: Receive, send: Send, reason: str) -> None:
    """Answer with status 403 and a sentence; the body of the request is not read."""
    kind = "http"
    if scope["type"] == "websocket":
        await receive()  # the handshake
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        kind = "websocket.http"
    body = f"Loopscope: {reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": f"{kind}.response.start", "status": 403, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})


class TimedRequests(H11Protocol):
    """HTTP connections that end if a request does not arrive in time.

    uvicorn limits only the time between two requests. A client that sends half of a request would
    hold its connection, and what is stored for it, for ever.
    """

    _timer: asyncio.TimerHandle | None = None
    _begun = 0.0
    _received = 0

    def connection_made(
        self,
        transport: asyncio.Transport,  # type: ignore[override]  # as uvicorn declares it
    ) -> None:
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        self._adjust()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._adjust()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _adjust(self) -> None:
        """Start or end the time limit, as the state of the request requires."""
        waits = self.transport.get_protocol() is self and (
            self.conn.their_state is h11.SEND_BODY
            or (
                self.conn.their_state is h11.IDLE
                and (self.cycle is None or bool(self.conn.trailing_data[0]))
            )
        )
        if not waits:
            self._end()
        elif self._timer is None:
            self._begin()

    def _begin(self) -> None:
        self._begun, self._received = self.loop.time(), 0
        self._timer = self.loop.call_later(MOST_SECONDS_OF_A_HEAD, self._expire)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        until = self._begun + MOST_SECONDS_OF_A_HEAD
        if self.conn.their_state is h11.SEND_BODY:
            until += self._received / BYTES_PER_SECOND_OF_A_BODY
        now = self.loop.time()
        if self.flow.read_paused:  # the app reads slowly, not the client
            until = now + MOST_SECONDS_OF_A_HEAD
        if now < until:
            self._timer = self.loop.call_later(until - now, self._expire)
        else:
            self.transport.close()
