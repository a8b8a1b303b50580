"""Handles the signals that stop a program: Ctrl-C, SIGTERM, SIGHUP."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

# Ctrl-C; sent by `kill` and by schedulers; sent when the terminal is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interrupt_once() -> Iterator[None]:
    """Makes the first of the signals raise KeyboardInterrupt; ignores later ones during clean-up.

    A signal that was ignored when the process started (nohup) stays ignored. Has no effect outside
    the main thread.
    """
    handlers: dict[signal.Signals, Any] = {}
    stopped: list[int] = []

    def stop(number, frame):
        if not stopped:
            stopped.append(number)
            name = signal.Signals(number).name
            raise KeyboardInterrupt(f"stopped by {name}: the same command resumes from here")

    try:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    handlers[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in handlers.items():
            # A stopped process is about to end, and nothing may interrupt its end either.
            signal.signal(number, signal.SIG_IGN if stopped else handler)


@contextlib.contextmanager
def block_signals() -> Iterator[None]:
    """Delays the signals until the block ends; processes started inside it never receive them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def block_signals_for_java() -> Iterator[None]:
    """Like `block_signals`, for starting Java, which unblocks the signals and sets handlers."""
    with block_signals():
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
