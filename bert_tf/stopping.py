"""Lets a signal end the run after the step that is under way."""

import signal
import threading

# What schedulers and `kill` send, and what Ctrl-C does.
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """While it is entered, SIGTERM and SIGINT are noted instead of ending the process.

    A second SIGINT raises KeyboardInterrupt at once. A signal that the process was started to
    ignore (nohup, a job in the background) stays ignored. Outside the main thread, where no
    handler can be set, no signal is noted.

        with StopRequest() as stop:
            while not stop.requested:
                step()

    Attributes:
        signal_name: the signal that came first, for example "SIGTERM"; None before.
    """

    def __init__(self):
        self.signal_name = None
        self._interrupted = False
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
        if number == signal.SIGINT:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True
        self.signal_name = self.signal_name or signal.Signals(number).name
