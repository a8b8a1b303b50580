"""A queue of requests; one at a time uses the model."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from explorer.errors import RequestError

# Requests that wait, beside the one that is answered: a page sends one or two at a time, so that
# more are several people's or a program's.
LONGEST = 16

Result = TypeVar("Result")


class AskerLeft(Exception):
    """The asker does not wait for the answer any more."""


class ModelQueue:
    """Calls functions one after the other in a thread of its own; so many requests may wait.

    A request is known by its ticket, a string that whoever sends it has made up.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "model")
        # (ticket, future), the first is being answered. Only the loop's thread uses the list.
        self._waiting: list[tuple[str, concurrent.futures.Future[Any]]] = []

    async def call(self, ticket: str, function: Callable[[Callable[[], None]], Result]) -> Result:
        """The result of a function, which is called when all before it have been.

        If this is cancelled, as where a browser has gone, a function that waits is not called, and
        one that runs ends when it next asks: it is called with a function that raises `AskerLeft`
        after a cancellation. Where as many requests wait as may, the next is refused.
        """
        if len(self._waiting) > self.longest:
            raise RequestError("queue_full", most=self.longest)
        has_left = threading.Event()

        def check_asker():
            if has_left.is_set():
                raise AskerLeft

        future = self._thread.submit(function, check_asker)
        entry = ticket, future
        self._waiting.append(entry)
        loop = asyncio.get_running_loop()

        def leave(_):
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the program ends
                loop.call_soon_threadsafe(self._waiting.remove, entry)

        future.add_done_callback(leave)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            has_left.set()
            raise

    def position(self, ticket: str) -> int | None:
        """Counts the requests before a ticket's; 0: it is being answered; None: no such ticket."""
        tickets = [waiting for waiting, _ in self._waiting]
        return tickets.index(ticket) if ticket in tickets else None

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Forgets those that wait, and waits for the one that is being answered."""
        self._thread.shutdown(cancel_futures=True)
