"""What a program does before its heavy imports: it makes output and Ctrl-C safe."""

import atexit
import contextlib
import errno
import importlib.util
import io
import os
import signal
import sys

# Where `_end` writes, as descriptor 2 goes nowhere while TensorFlow is imported; None before
# `begin`, that is in a process that is not one of the programs.
_messages = None

# What a write to a pipe without a reader ends with, and one to a terminal that was closed.
_READER_GONE = (errno.EPIPE, errno.EIO)


def begin():
    """Prepares the process; a program calls it before it imports anything heavy.

    Standard streams that are closed become /dev/null. Output that nobody reads any more is
    discarded: a closed log viewer must not end days of training. What an encoding cannot express is
    shown with backslashes. Ctrl-C prints one line and ends with status 1 (see `interruptible`).
    A file that hides one of the packages ends the program with one line.
    """
    global _messages
    if sys.platform == "win32":  # it has neither fork, nor file locks, nor these signals
        sys.exit("error: this project runs on Linux, on macOS, and in WSL2. Received: Windows")
    open_missing_descriptors()
    _replace_streams()
    try:
        check_packages()
    except ImportError as error:
        sys.exit(f"error: {error}")
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # begun already, or started to ignore Ctrl-C, as a job in the background is
    _messages = os.dup(2)
    signal.signal(signal.SIGINT, _end)
    # For a KeyboardInterrupt that comes while another one is handled, or where none can be raised.
    sys.excepthook, sys.unraisablehook = _show_exception, _show_unraisable
    # Runs last; after it Python would give the signal its default back, death without a word.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def check_packages():
    """Sees that Python finds the packages that other repositories have files of the same name for.

    Raises:
        ImportError: names the file that it finds instead, such as tokenization.py in the working
            folder when that is a checkout of google-research/bert.
    """
    for name in ("tokenization", "create_pretraining_data"):
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is None:
            raise ImportError(
                f"{found.origin} hides this project's package {name}: start Python in another "
                "folder (or take that one off PYTHONPATH), or rename the file"
            )


def open_missing_descriptors():
    """Opens /dev/null for each closed one of the descriptors 0 to 2.

    Otherwise the next file that is opened, say a checkpoint, would get the number, and with it
    whatever is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number


class _Output(io.FileIO):
    """A file that discards what is written once its reader has gone."""

    def write(self, content):
        try:
            return super().write(content)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if error.errno not in _READER_GONE:
                raise  # say of a full disk; once, not again when the interpreter ends
            return super().write(content)


def _replace_streams():
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue  # somebody has redirected it
        by_line = stream is not None and (stream.line_buffering or stream.write_through)
        replaced = io.TextIOWrapper(
            io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
            encoding="utf-8" if stream is None else stream.encoding,
            errors="backslashreplace",
            line_buffering=by_line,
        )
        setattr(sys, name, replaced)


def interruptible():
    """While it is entered, Ctrl-C raises KeyboardInterrupt, so that what is open gets closed.

    Outside, while modules are imported and while the interpreter shuts down, there is nothing to
    close, and an exception could come out as another one or as a traceback: the process ends at
    once. Changes nothing in a process that did not `begin`.
    """
    return _handling(signal.default_int_handler, instead_of=_end)


def ending_at_once():
    """The opposite, for imports within `interruptible`."""
    return _handling(_end, instead_of=signal.default_int_handler)


@contextlib.contextmanager
def _handling(handler, instead_of):
    ours = _messages is not None and signal.getsignal(signal.SIGINT) is instead_of
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, instead_of)


def end_silently_from_now_on():
    """Another Ctrl-C ends the process without a word: what there is to say has been said."""
    if _messages is not None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))


def _end(*_):
    """Says in one line that the program was interrupted, and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the signal may have come in the middle of a print
            stream.flush()
    with contextlib.suppress(OSError):
        os.write(_messages, b"error: interrupted\n")
    os._exit(1)


def _show_exception(kind, error, traceback):
    if issubclass(kind, KeyboardInterrupt):
        _end()
    sys.__excepthook__(kind, error, traceback)


def _show_unraisable(event):
    if event.exc_type is not None and issubclass(event.exc_type, KeyboardInterrupt):
        _end()
    sys.__unraisablehook__(event)
