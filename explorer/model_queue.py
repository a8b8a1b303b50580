"""Queues requests, so that one at a time uses the model."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from explorer.errors import RequestError

# The maximum number of waiting requests, besides the one being answered: a page sends one or two at
# a time, so more come from several people or a program.
LONGEST = 16

Result = TypeVar("Result")


class AskerLeft(Exception):
    """Raised if the asker no longer waits for the answer."""


class ModelQueue:
    """Calls functions one after the other in its own thread; at most `longest` requests wait.

    A request is identified by its ticket, a string that its sender makes up.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "model")
        # (ticket, future); the first is being answered. Only the loop's thread uses the list.
        self._waiting: list[tuple[str, concurrent.futures.Future[Any]]] = []

    async def call(self, ticket: str, function: Callable[[Callable[[], None]], Result]) -> Result:
        """Calls a function after all earlier ones and returns its result.

        After a cancellation, for example because the browser left, a waiting function is not
        called. A running one ends at its next check: its argument is a function that then raises
        `AskerLeft`. Raises a `RequestError` if the queue is full.
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
            with contextlib.suppress(RuntimeError):  # the loop has ended, as the program ends
                loop.call_soon_threadsafe(self._waiting.remove, entry)

        future.add_done_callback(leave)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            has_left.set()
            raise

    def position(self, ticket: str) -> int | None:
        """Counts the requests before a ticket's: 0 if it is being answered, None if unknown."""
        tickets = [waiting for waiting, _ in self._waiting]
        return tickets.index(ticket) if ticket in tickets else None

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Drops waiting requests, and waits for the one being answered."""
        self._thread.shutdown(cancel_futures=True)
