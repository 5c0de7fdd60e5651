"""Uses of Streamlit's internals, which any of its versions may change. Each is checked before use.

``canvas/assets/streamlit.js`` has the internals of its page that scripts need; styles name its
classes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlit.runtime.session_manager import SessionStorage


class StreamlitChanged(RuntimeError):
    """This version of Streamlit differs from the one that Loopscope was tested with."""

    def __init__(self, missing: str) -> None:
        from streamlit import __version__

        super().__init__(
            f"Streamlit {__version__} has no {missing}, which Loopscope needs: install a "
            "version "
            "that its package asks for"
        )


def send_at_once() -> None:
    """Has the server send every packet when it is written.

    Streamlit binds its socket in a way that asyncio does not know for TCP, and so leaves small
    packets waiting for each other: 40 ms for each of the sixty files of a page, and for what a step
    sends. Connections inherit the option from the socket that they come in at.
    """
    from streamlit.web.server.starlette import starlette_server

    bind = getattr(starlette_server, "_bind_socket", None)
    if bind is None:
        raise StreamlitChanged("starlette_server._bind_socket")

    def bound(address: str, port: int, backlog: int) -> socket.socket:
        bound_socket: socket.socket = bind(address, port, backlog)
        bound_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound_socket

    starlette_server._bind_socket = bound


def serve_with(headers: Sequence[tuple[str, str]], protocol: type[asyncio.Protocol]) -> None:
    """Add headers to every response of the server, and speak HTTP with this class."""
    from streamlit.web.server.starlette import starlette_server

    options = getattr(starlette_server, "_get_uvicorn_config_kwargs", None)
    if options is None:
        raise StreamlitChanged("starlette_server._get_uvicorn_config_kwargs")

    def extended() -> dict[str, Any]:
        return {**options(), "headers": list(headers), "http": protocol}

    starlette_server._get_uvicorn_config_kwargs = extended


def resolve_no_public_address() -> None:
    """Keep Streamlit from sending a request to a public address to find its own.

    It does so in the event loop when a handshake comes from a foreign origin, and when it prints
    its URLs.
    """
    from streamlit import net_util

    names = ("get_external_ip", "get_internal_ip")
    for name in names:
        if not hasattr(net_util, name):
            raise StreamlitChanged(f"net_util.{name}")
    for name in names:
        setattr(net_util, name, _no_address)


def _no_address() -> None:
    """Return None, as Streamlit does where it has found no address."""


def keep_closed_sessions_in(storage: SessionStorage) -> None:
    """Make the running server keep the sessions of closed pages in ``storage``."""
    from streamlit.runtime import get_instance
    from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

    manager = getattr(get_instance(), "_session_mgr", None)
    if not isinstance(manager, WebsocketSessionManager) or not hasattr(manager, "_session_storage"):
        raise StreamlitChanged("Runtime._session_mgr._session_storage")
    manager._session_storage = storage
