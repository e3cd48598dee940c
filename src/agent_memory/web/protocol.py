"""The HTTP protocol of one connection."""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = (b"upgrade", b"http2-settings")


class Protocol(HttpToolsProtocol):
    """uvicorn's, but a request that offers to change the protocol is served as if it did not.

    Java's HTTP client offers HTTP/2 with its first request. The parser takes such a request to end with its head: the
    body would be lost, or even be read as the next request.
    """

    def data_received(self, data: bytes) -> None:
        """Parse what came; requests are started by the callbacks of the parser."""
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._parsed(data)
        except httptools.HttpParserError:
            message = "Invalid HTTP request received."
            self.logger.warning(message)
            self.send_400_response(message)

    def _should_upgrade(self) -> bool:
        # Makes the callbacks leave the request alone until it comes again without its offer.
        return any(name == b"upgrade" for name, _ in self.headers)

    def _parsed(self, data: bytes) -> bytes:
        """What is to be parsed next: nothing, or after an offer the request without it."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            if self._should_upgrade():
                head = self._head_without_offer()
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                return head + data[stopped.args[0] :]
        return b""

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                kept = [token for token in value.split(b",") if token.strip().lower() not in _OFFER]
                lines.append(b"connection:" + b",".join(kept))
            elif name not in _OFFER:
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join(lines) + b"\r\n\r\n"
