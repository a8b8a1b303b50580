"""Defines the error for bad input, which the programs print as one line."""


class InputError(ValueError):
    """Raised if something the user supplied is wrong: a file, a flag, a vocabulary, a record.

    The message is one line: what must hold, then what was received, with the file and line if
    there is one. Every program that raises it ends with exit status 1.
    """


class MachineError(InputError):
    """Raised if not the input but the machine fails: a process was killed, memory ran out.

    Unfinished work is worth keeping, because the same command may succeed later.
    """
