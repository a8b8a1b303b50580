"""Serves the page on this machine only."""

import concurrent.futures
import contextlib
import socket
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from bert_common.errors import InputError
from explorer.answers import Vocabulary
from explorer.application import make_application

if TYPE_CHECKING:
    from korean_bert.model import Model

HOST = "127.0.0.1"

# The maximum number of connections; further ones get 503 at once.
MOST_CONNECTIONS = 256


def open_port(port: int) -> socket.socket:
    """Opens a socket that listens on this machine only; port 0 takes any free port."""
    try:
        return socket.create_server((HOST, port), backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise InputError(
            f"--port must be free, or 0 for any that is. Received: {port}, {error.strerror}"
        ) from None


@contextlib.contextmanager
def make_server(
    model: "Model", vocabularies: Iterable[Vocabulary] = ()
) -> Iterator[uvicorn.Server]:
    """Yields a uvicorn server for a model; afterwards, drops the requests that wait for it."""
    thread = concurrent.futures.ThreadPoolExecutor(1, "model")
    config = uvicorn.Config(
        make_application(model, vocabularies, thread),
        # Named, so that other installed packages change nothing.
        loop="asyncio", http="h11", ws="none", lifespan="off", interface="asgi3",
        log_level="warning", access_log=False, server_header=False,
        limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=1,
    )  # fmt: skip
    try:
        yield uvicorn.Server(config)
    finally:
        thread.shutdown(cancel_futures=True)


def serve(model: "Model", vocabularies: Iterable[Vocabulary], listening: socket.socket) -> None:
    """Answers on a listening socket until Ctrl-C."""
    made = make_server(model, vocabularies)
    # uvicorn raises Ctrl-C again when it has stopped.
    with contextlib.suppress(KeyboardInterrupt), listening, made as server:
        server.run(sockets=[listening])
