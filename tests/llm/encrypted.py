"""A server of this machine whose certificate nobody has signed but itself."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CERTIFICATE = Path(__file__).parent.parent / "data" / "self_signed.pem"


class _Silent(BaseHTTPRequestHandler):  # it refuses whatever it is asked
    def log_message(self, *_: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that does not trust us hangs up."""


@contextmanager
def serving(*, is_encrypted: bool = True) -> Iterator[str]:
    """Its address, which begins with https:// even where it is not encrypted."""
    server = _Server(("127.0.0.1", 0), _Silent)
    if is_encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
