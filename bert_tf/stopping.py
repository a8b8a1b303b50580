"""Lets a signal end the run after the step that is under way."""

import contextlib
import os
import signal
import sys
import threading

# What schedulers and `kill` send, what Ctrl-C does, and what a terminal that closes sends.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """While it is entered, SIGTERM, SIGINT and SIGHUP are noted instead of ending the process.

    A second SIGINT raises KeyboardInterrupt, once: more of them would only interrupt the way
    out. A signal that the process was started to ignore (nohup, a job in the background) stays
    ignored. Outside the main thread, where no handler can be set, no signal is noted.

        with StopRequest() as stop:
            while not stop.requested:
                step()

    Attributes:
        signal_name: the signal that came first, for example "SIGTERM"; None before.
    """

    def __init__(self):
        self.signal_name = None
        self._interrupts = 0
        self._handlers = {}

    @property
    def requested(self):
        """Whether a signal has come."""
        return self.signal_name is not None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception):
        for number, handler in self._handlers.items():
            # None: a handler that was not set from Python, which cannot be set again from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._handlers = {}

    def _note(self, number, frame):
        self.signal_name = self.signal_name or signal.Signals(number).name
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts == 1:
                _say(
                    "interrupted: training saves after the step under way, then ends (press "
                    "Ctrl-C again to end at once, without saving)"
                )
            elif self._interrupts == 2:
                raise KeyboardInterrupt(
                    "interrupted: the steps since the newest checkpoint are not saved; the same "
                    "command goes on from that checkpoint"
                )


def _say(line):
    """Writes a line to standard error from within a signal handler.

    Not with print: the signal may have come in the middle of another.
    """
    if sys.stderr is not None:  # else the descriptor may be another file's
        with contextlib.suppress(OSError):  # nobody reads any more
            os.write(2, f"\n{line}\n".encode())
