"""A visitor without a browser: speaks with a real server as the page's own scripts do, so that a
hundred of them cost little.
"""

from __future__ import annotations

import time
import urllib.request
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from websockets import Subprotocol
from websockets.sync.client import connect

_LONG = 60.0
"""Seconds that an answer may take on a busy machine."""


class Visitor:
    """One open page of a server that asks for no token against forged requests."""

    def __init__(self, server: str, query: str = "") -> None:
        self._server = server
        self.widgets: dict[str, str] = {}
        """Key to id."""
        self.messages: list[str] = []
        """What the page told in boxes of their own, refusals and remarks."""
        self._query = query
        address = f"{server.replace('http', 'ws', 1)}/_stcore/stream"
        self._open = ExitStack()
        protocols = [Subprotocol("streamlit")]
        self._socket = self._open.enter_context(
            connect(address, subprotocols=protocols, max_size=None, compression=None)
        )

    def __enter__(self) -> Self:
        self.rerun()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the page."""
        self._open.close()

    def rerun(self, *changed: WidgetState) -> None:
        """Draws the page, and waits until it is drawn."""
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.widget_states.CopyFrom(WidgetStates(widgets=changed))
        self._send(message)
        self.messages.clear()
        self.widgets.clear()
        while True:
            came = self._receive()
            if came.WhichOneof("type") == "delta":
                self._note(came)
            if (
                came.WhichOneof("type") == "script_finished"
                and came.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                return

    def press(self, key: str) -> None:
        """Presses a button."""
        self.rerun(WidgetState(id=self.widgets[key], trigger_value=True))

    def wait(self) -> None:
        """Until no run is under way any more."""
        while "progress_stop" in self.widgets:
            time.sleep(0.05)
            self.rerun()

    def upload(self, key: str, name: str, data: bytes) -> None:
        """Puts one file into an uploader, which takes it and goes."""
        message = BackMsg()
        message.file_urls_request.request_id = name
        message.file_urls_request.file_names.append(name)
        self._send(message)
        while (came := self._receive()).WhichOneof("type") != "file_urls_response":
            pass
        urls = came.file_urls_response.file_urls[0]
        self._put(urls, name, data)
        held = WidgetState(id=self.widgets[key])
        info = held.file_uploader_state_value.uploaded_file_info.add(
            name=name, size=len(data), file_id=urls.file_id
        )
        info.file_urls.CopyFrom(urls)
        self.rerun(held)

    def _put(self, urls: FileURLs, name: str, data: bytes) -> None:
        edge = b"a line that no file of a test holds"
        head = f'Content-Disposition: form-data; name="{name}"; filename="{name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        body = b"--" + edge + b"\r\n" + head.encode() + data + b"\r\n--" + edge + b"--\r\n"
        kind = f'multipart/form-data; boundary="{edge.decode()}"'
        request = urllib.request.Request(
            f"{self._server}{urls.upload_url}", body, {"Content-Type": kind}, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=_LONG):
            pass

    def _note(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        kind = element.WhichOneof("type") or ""
        if kind == "alert":
            self.messages.append(element.alert.body.replace("\\", ""))  # Markdown's
        id = str(getattr(getattr(element, kind, None), "id", ""))
        if id:
            self.widgets[id.rpartition("-")[2]] = id

    def _send(self, message: BackMsg) -> None:
        self._socket.send(message.SerializeToString())

    def _receive(self) -> ForwardMsg:
        came = self._socket.recv(_LONG)
        assert isinstance(came, bytes)
        message: ForwardMsg = ForwardMsg.FromString(came)
        return message
