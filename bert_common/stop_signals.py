"""Ends the making of records on Ctrl-C, SIGTERM and SIGHUP, however often they come."""

import contextlib
import signal
import threading

# Ctrl-C; what `kill` and schedulers send; a terminal that is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interrupted_once():
    """Lets the first of the signals raise KeyboardInterrupt, and ignores those after it.

    So none of them cuts short what has to be done at the end. A signal that the process was
    started to ignore (nohup) stays ignored. Outside the main thread nothing changes.
    """
    handlers, stopped = {}, []

    def stop(number, frame):
        if not stopped:
            stopped.append(number)
            name = signal.Signals(number).name
            raise KeyboardInterrupt(f"stopped by {name}: the same command goes on from here")

    try:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    handlers[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in handlers.items():
            # A process that was stopped is about to end: nothing may interrupt that either.
            signal.signal(number, signal.SIG_IGN if stopped else handler)


@contextlib.contextmanager
def held_back():
    """Delays the signals until the block ends; a process that is started in it never gets them."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)


@contextlib.contextmanager
def held_back_from_java():
    """As `held_back`, where what is started lets the signals through again, or sets handlers."""
    with held_back():
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
