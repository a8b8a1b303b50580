"""Prepares a program before its heavy imports: makes output and Ctrl-C safe."""

import atexit
import contextlib
import errno
import importlib.util
import io
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import IO, Any

# A handler, as `signal.signal` accepts it.
Handler = Callable[[int, types.FrameType | None], Any] | signal.Handlers

# The descriptor that `_exit` writes to, because descriptor 2 is discarded while TensorFlow is
# imported; None before `begin`, that is, in a process that is not one of the programs.
_messages = None

# The errors of writing to a pipe without a reader, and to a closed terminal.
_READER_GONE = (errno.EPIPE, errno.EIO)


def begin() -> None:
    """Prepares the process; programs call it before they import anything heavy.

    Output is discarded once its reader has gone: closing a log viewer must not end days of
    training. Characters that the output encoding lacks are printed as backslash escapes. Ctrl-C
    prints one line and ends the process with status 1 (see `interruptible`). If a file shadows one
    of the packages, the program ends with a one-line error.
    """
    global _messages
    if sys.platform == "win32":  # it lacks fork, file locks and these signals
        sys.exit("error: this project runs on Linux, on macOS, and in WSL2. Received: Windows")
    _replace_streams()
    try:
        check_packages()
    except ImportError as error:
        sys.exit(f"error: {error}")
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # prepared already, or started with Ctrl-C ignored, as background jobs are
    _messages = os.dup(2)
    signal.signal(signal.SIGINT, _exit)
    # For a KeyboardInterrupt raised while another one is handled, or where none can be raised.
    sys.excepthook, sys.unraisablehook = _show_exception, _show_unraisable
    # Runs last; otherwise Python would restore the default handler, which prints no message.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def check_packages() -> None:
    """Raises an ImportError if a file of another repository shadows one of this project's packages.

    For example tokenization.py, if the working folder is a checkout of google-research/bert.
    """
    for name in ("tokenization", "create_pretraining_data"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is None:
            raise ImportError(
                f"{spec.origin} hides this project's package {name}: start Python in another "
                "folder (or take that one off PYTHONPATH), or rename the file"
            )


@contextlib.contextmanager
def redirect_standard_error(file: IO[bytes]) -> Iterator[None]:
    """Redirects descriptor 2 to a file, for C++ code and for processes started in the block."""
    standard_error = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)


class _Output(io.FileIO):
    """A file that discards everything written after its reader has gone."""

    def write(self, content):
        try:
            return super().write(content)
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if error.errno not in _READER_GONE:
                raise  # a full disk, say; raised once, not again when the interpreter ends
            return super().write(content)


def _replace_streams():
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue  # redirected by the caller
        replacement = io.TextIOWrapper(
            io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering or stream.write_through,
        )
        setattr(sys, name, replacement)


def interruptible() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which Ctrl-C raises KeyboardInterrupt, so that resources are closed.

    Outside it, while modules are imported or the interpreter shuts down, there is nothing to close,
    and KeyboardInterrupt could surface as a different exception or as a traceback, so the process
    exits at once. The context has no effect in a process that did not call `begin`.
    """
    return replace_interrupt_handler(signal.default_int_handler, instead_of=_exit)


def exit_on_interrupt() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which Ctrl-C exits at once, for imports inside `interruptible`."""
    if _messages is None:
        return contextlib.nullcontext()
    return replace_interrupt_handler(_exit, instead_of=signal.default_int_handler)


@contextlib.contextmanager
def replace_interrupt_handler(handler: Handler, instead_of: Handler) -> Iterator[None]:
    """Sets a different handler for SIGINT in a context if the current one is `instead_of`."""
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) == instead_of
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, instead_of)


def exit_silently_on_interrupt() -> None:
    """Makes the next Ctrl-C end the process silently, after a message has been printed."""
    if _messages is not None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))


def _exit(*_):
    """Prints one line, which says that the program was interrupted, and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the signal may have arrived in the middle of a print
            stream.flush()
    if _messages is not None:
        with contextlib.suppress(OSError):
            os.write(_messages, b"error: interrupted\n")
    os._exit(1)


def _show_exception(kind, error, traceback):
    if issubclass(kind, KeyboardInterrupt):
        _exit()
    sys.__excepthook__(kind, error, traceback)


def _show_unraisable(event):
    if event.exc_type is not None and issubclass(event.exc_type, KeyboardInterrupt):
        _exit()
    sys.__unraisablehook__(event)
