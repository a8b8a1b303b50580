"""Lets a signal end training after the current step, or at once if nothing would be lost."""

import contextlib
import os
import select
import signal
import threading
from typing import Any, Self

from bert_common.stop_signals import SIGNALS

# How long the listening thread leaves a second Ctrl-C to Python before it ends the process.
PATIENCE_SECONDS = 1.0

_SECOND_INTERRUPT = (
    "interrupted: the steps since the newest checkpoint are not saved; the same command "
    "continues from that checkpoint"
)


class StopRequest:
    """A context in which SIGTERM, SIGINT and SIGHUP are recorded instead of ending the process.

    A second SIGINT raises KeyboardInterrupt, but a third does not, as it would only interrupt the
    clean-up. A signal that was ignored when the process started (nohup, a background job) stays
    ignored. Outside the main thread, where no handler can be set, no signal is recorded.

    Python runs a handler only when its main thread returns from C, which takes minutes while XLA
    compiles. Therefore a thread listens too and ends the process at once if there is nothing to
    save, or on a second SIGINT.

    Attributes:
        signal_name: the first signal received, for example "SIGTERM"; None before.
        nothing_to_save: set by the caller: whether a checkpoint holds every step so far.
    """

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self.nothing_to_save = False
        self._interrupts = 0
        self._handlers: dict[int, Any] = {}
        self._listening: tuple[threading.Thread, int, int] | None = None

    @property
    def requested(self) -> bool:
        """Whether a signal was received."""
        return self.signal_name is not None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, self._record)
            self._listen()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stop_listening()
        for number, handler in self._handlers.items():
            # None stands for a handler set outside Python, which cannot be restored from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._handlers = {}

    def _record(self, number, frame):
        self.signal_name = self.signal_name or signal.Signals(number).name
        if number == signal.SIGINT and not self.nothing_to_save:
            self._interrupts += 1
            if self._interrupts == 1:
                _write_line(
                    "interrupted: training saves after the step under way, then ends (press "
                    "Ctrl-C again to end at once, without saving)"
                )
            elif self._interrupts == 2:
                raise KeyboardInterrupt(_SECOND_INTERRUPT)

    def _listen(self):
        """Starts the thread, and has Python's C-level handler write signal numbers to it."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._wait_for_signals, args=(reading,), daemon=True)
        thread.start()
        self._listening = thread, writing, former

    def _stop_listening(self):
        if self._listening:
            thread, writing, former = self._listening
            self._listening = None
            signal.set_wakeup_fd(former)
            os.close(writing)
            thread.join()

    def _wait_for_signals(self, reading):
        """Ends the process if a signal requires it; returns when the pipe is closed."""
        interrupts = 0
        with open(reading, "rb", buffering=0) as numbers:
            while byte := numbers.read(1):
                number = byte[0]
                if number not in self._handlers:
                    continue
                if self.nothing_to_save:
                    name = signal.Signals(number).name
                    _write_line(
                        f"error: stopped by {name} before a new step was finished: nothing to "
                        "save; the same command starts again from the last checkpoint, if any"
                    )
                    os._exit(128 + number)
                interrupts += number == signal.SIGINT
                if interrupts >= 2 and number == signal.SIGINT:
                    more, _, _ = select.select([numbers], [], [], PATIENCE_SECONDS)
                    if not more and self._interrupts < 2:  # the main thread is not in Python
                        _write_line(f"error: {_SECOND_INTERRUPT}")
                        os._exit(1)


def _write_line(line):
    """Writes to standard error without print, as the signal may have interrupted another print."""
    with contextlib.suppress(OSError):  # the reader may be gone
        os.write(2, f"\n{line}\n".encode())
