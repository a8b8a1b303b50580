"""Runs the pieces that are missing in the ledger, one after the other."""

import contextlib
import os
import shlex
import shutil
from pathlib import Path

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.file_lock import locked
from bert_common.folders import make_writable
from choices.estimates import Estimates
from run_scripts.reference.ledger import keep_to_one_ledger, read_runs
from run_scripts.reference.measure import measure
from run_scripts.reference.pages.tables import without_seed


def select(plan, questions=None, variants=None, tasks=None):
    """The pieces that are used by chosen questions, variants and tasks, and what they need.

    Args:
        plan: a `Plan`.
        questions, variants, tasks: names; None for all.

    Returns:
        A list of `Piece`, those that are needed first.

    Raises:
        InputError: a name is unknown, or together they choose nothing.
    """
    uses = [use for piece in plan.pieces.values() for use in piece.uses]
    chosen = {"questions": questions, "variants": variants, "tasks": tasks}
    for (name, values), column in zip(chosen.items(), zip(*uses, strict=True), strict=True):
        known = sorted(set(column))
        for value in values or ():
            if value not in known:
                raise InputError(f"--{name} must be of {', '.join(known)}. Received: {value}")
    wanted = set()

    def add(piece):
        if piece.folder not in wanted:
            wanted.add(piece.folder)
            for need in piece.needs:
                add(need)

    for piece in plan.pieces.values():
        for use in piece.uses:
            columns = zip(use, chosen.values(), strict=True)
            if all(values is None or value in values for value, values in columns):
                add(piece)
    if not wanted:
        raise InputError(
            "--questions, --variants and --tasks must have something in common. Received: "
            + ", ".join(f"--{name}={','.join(values)}" for name, values in chosen.items() if values)
        )
    return [piece for piece in plan.pieces.values() if piece.folder in wanted]


def run_pieces(plan, pieces, ledger):
    """Runs the pieces that the ledger lacks; prints progress and the time that is left.

    A piece that fails is reported, and those that need it are left out; the rest goes on.

    Args:
        plan: the `Plan`, for the models' configurations.
        pieces: some of its pieces, those that are needed first.
        ledger: the file of runs.

    Returns:
        The names of the pieces that failed or were left out.

    Raises:
        InputError: the folder of work is that of another ledger.
        KeyboardInterrupt: stopped; the same call goes on.
    """
    work_dir, failed = plan.inputs.work_dir, []
    make_writable(work_dir, "--work_dir must be a folder that can be written to")
    keep_to_one_ledger(work_dir, ledger)
    for path, sizes in plan.configs.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            write_json(path, sizes)
    for number, piece in enumerate(pieces, 1):
        runs = read_runs(ledger)
        blocked = [need.name for need in piece.needs if need.name in failed]
        if blocked:
            print(f"[{number}/{len(pieces)}] {piece.name} left out: no {blocked[0]}", flush=True)
            failed.append(piece.name)
            continue
        if piece.name not in runs:
            left = Estimates(plan.pieces.values(), runs).hours(
                p for p in pieces[number - 1 :] if p.name not in runs
            )
            print(f"[{number}/{len(pieces)}] {piece.name}, {left:.1f} hours left", flush=True)
        try:
            run_piece(piece, runs, ledger, work_dir)
        except InputError as error:
            print(f"error: {piece.name}: {error}", flush=True)
            failed.append(piece.name)
    return failed


def run_piece(piece, runs, ledger, work_dir):
    """Runs a piece unless the ledger has it, then removes what nobody needs of its folder.

    Another process that runs the same piece is waited for.

    Args:
        piece: a `Piece` whose needs are in the ledger.
        runs: the ledger's.
        ledger, work_dir: as for `measure`.

    Raises:
        InputError: the program failed, or the ledger has the piece by another command.
    """
    if piece.name not in runs:
        for need in piece.needs:
            make_again(need, runs, work_dir)
    with locked(f"{piece.folder}.lock", wait=True):
        if piece.name in read_runs(ledger):
            _run(piece, runs, ledger, work_dir)
        else:
            with being_made(piece, ledger):
                _run(piece, runs, ledger, work_dir)


def make_again(piece, runs, work_dir):
    """Makes the folder of a piece that the ledger has, if it is gone, and those that this needs.

    The ledger, which outlives the folders of a machine, stays as it is. What differs from it is
    printed, as another machine may learn a slightly different vocabulary.

    Raises:
        InputError: the program failed, or it is the text that differs.
    """
    if is_whole(piece):
        return
    for need in piece.needs:
        make_again(need, runs, work_dir)
    with locked(f"{piece.folder}.lock", wait=True):
        if is_whole(piece):
            return
        print(f"{piece.folder} is gone, made again: {piece.name}", flush=True)
        own_ledger = Path(f"{piece.folder}.again")
        if not os.path.isdir(piece.folder):
            own_ledger.unlink(missing_ok=True)  # of a folder that was made, then removed
        with being_made(piece, own_ledger):
            made = _run(piece, runs, own_ledger, work_dir)
            if different := _differences(runs[piece.name].scores, made.scores):
                if piece.kind == "text":
                    own_ledger.unlink()  # so that the folder stays marked
                    raise InputError(f"the text must be the ledger's. Received: {different}")
                print(f"note: {piece.name} differs from the ledger: {different}", flush=True)
        own_ledger.unlink()


def _differences(scores, made):
    """Says which scores are not those that were made again; times always differ."""
    return ", ".join(
        f"{name} {made.get(name)} instead of {score}"
        for name, score in scores.items()
        if not name.startswith("seconds") and made.get(name) != score
    )


@contextlib.contextmanager
def being_made(piece, ledger):
    """Marks the folder of a piece as not whole, until the ledger has the piece."""
    os.makedirs(piece.folder, exist_ok=True)
    unfinished(piece).touch()
    try:
        yield
    finally:  # also where the program was stopped just as it ended
        if piece.name in read_runs(ledger):
            unfinished(piece).unlink(missing_ok=True)


def unfinished(piece):
    """A file that is there as long as what is in the piece's folder is not all."""
    return Path(f"{piece.folder}.unfinished")


def is_whole(piece):
    """Whether the folder of a piece holds all that its program writes."""
    return os.path.isdir(piece.folder) and not unfinished(piece).exists()


def _run(piece, runs, ledger, work_dir):
    scores = {need.name: runs[need.name].scores for need in piece.needs}
    command = _command(piece, scores, runs)
    _check_trials(piece, command, runs, ledger)
    run = measure(
        piece.name,
        command,
        lambda: piece.read(piece.folder),
        ledger=ledger,
        work_dir=work_dir,
        seed=piece.seed,
    )
    for pattern in piece.leaves:
        for path in Path(piece.folder).glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return run


def _command(piece, scores, runs):
    """The command of a piece, in the precision that the ledger has it in, or another seed of it."""
    command, group = piece.command(scores), without_seed(piece.name)[0]
    others = (run for name, run in runs.items() if without_seed(name)[0] == group)
    alike = runs.get(piece.name) or next(others, None)
    recorded = _precision(shlex.split(alike.command)) if alike else []
    return [recorded[0] if recorded and flag in _precision(command) else flag for flag in command]


def _precision(command):
    """The flag of precision in a command, a list of at most one."""
    return [flag for flag in command if flag.startswith("--precision=")]


def _check_trials(piece, command, runs, ledger):
    """Checks that a piece's updates were timed alike: on one machine, in the piece's precision."""
    trials = [need.name for need in piece.needs if need.kind == "trial"]
    machines = {runs[name].machine: name for name in trials}
    if len(machines) > 1:
        raise InputError(
            "updates must be timed on one machine, or their times cannot be compared. Received: "
            + ", ".join(f"{name} on {machine}" for machine, name in machines.items())
            + f"; remove one of them from {ledger} to measure it again"
        )
    for name in trials:
        timed = _precision(shlex.split(runs[name].command))
        if timed != _precision(command):
            raise InputError(
                f"updates must be timed in the precision of {piece.name}, "
                f"{' '.join(_precision(command))}. Received: {name} with {' '.join(timed)}; remove "
                f"it from {ledger} to measure it again"
            )
