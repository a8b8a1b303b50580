"""Serves explore's page in a thread, for tests."""

import contextlib
import threading
import time


@contextlib.contextmanager
def served(model, vocabularies=()):
    """The port at which a model's page is, while the block runs."""
    from explorer.server import make_server, open_port

    with open_port(0) as listening, make_server(model, vocabularies) as server:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
