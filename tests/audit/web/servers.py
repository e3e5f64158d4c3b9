"""Local servers that answer as a test says."""

import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answers(dict):
    """What a server answers by path: a list of (status, headers, body); the last one is for good.

    A header of None is not sent. An answer of None ends the connection.
    """

    missing = (404, {}, b"")
    """What other paths answer."""

    def __init__(self):
        super().__init__()
        self.asked, self.heads = [], []
        self.clients = set()

    def take(self, path):
        """Return the next answer of a path."""
        answers = self.get(path, [self.missing])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Server(ThreadingHTTPServer):
    """A server that many may visit at once; the sixth would wait for a second."""

    daemon_threads = True  # They wait for the next request of an open connection.
    request_queue_size = 64


@contextmanager
def serving(certificate=None, answers=None):
    """Serve by HTTP/1.1, and TLS with a certificate; gives the base URL and the answers."""
    answers = Answers() if answers is None else answers

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self):
            answers.heads.append(self.path)
            self.do_GET()

        def do_GET(self):
            answers.asked.append((self.path, self.headers, time.monotonic()))
            answers.clients.add(self.client_address)
            if (answer := answers.take(self.path)) is None:
                self.close_connection = True
                return
            status, headers, body = answer
            self.send_response(status)
            sent = {"Content-Type": "text/html", "Content-Length": str(len(body))} | headers
            for name, value in sent.items():
                if value is not None:
                    self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.handle_error = lambda *refused: None
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_raw(answer):
    """Call ``answer(connection, received)`` for each connection; gives the host and port."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    answer(connection, connection.recv(65_536))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
