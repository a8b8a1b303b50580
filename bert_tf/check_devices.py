"""Checks this machine's devices: what works, how right, how fast.

    python -m bert_tf.check_devices            # a minute or so; --quick: no speeds of BERT-base

One training step of a tiny BERT on every device and with every strategy, with XLA and without,
in every precision, against the same step on the CPU in float32 without XLA. Then how fast
matrix products and the steps of BERT-base are. All of it happens in processes of their own: if
one of them dies, as XLA does on a GPU that it cannot compile for, the rest goes on in another.

Shapes: B batch, T tokens, P predictions, W weights of the model in all.
"""

import argparse
import contextlib
import functools
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bert_tf.config import BertConfig

# What starts a process that works on tasks.
COMMAND = (sys.executable, "-m", "bert_tf.check_devices")

SEED = 1

# The step that is compared: an update whose learning rate is large beside float32's rounding.
# Adam's first update is hardly more than the gradient's sign, and noise decides the sign of
# what is nearly zero; with an epsilon of about a gradient's size the update follows the gradient.
TINY = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TINY_BATCH = (8, 16, 4)  # B, T, P
LEARNING_RATE, EPSILON = 0.1, 1e-3

# How far the numbers may be from the CPU's: rounding in another order; 8 or 11 bits.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}

# Of a CPU, of a GPU: the size of the matrices, the examples of a BERT-base step and how many
# such steps are timed (one takes seconds on a CPU).
PRODUCT_SIZES = {"CPU": 2048, "GPU": 8192}
BASE_BATCHES = {"CPU": (8, 128, 20), "GPU": (32, 128, 20)}  # B, T, P
BASE_STEPS = {"CPU": 2, "GPU": 20}
BASE_VOCAB_SIZE = 30522  # of the published English model

# Products are timed for so long: a single one on a GPU takes a millisecond.
PRODUCT_SECONDS, MAX_PRODUCTS = 0.5, 1000

# A process that answers nothing for so long hangs; the longest wait is for BERT-base to be
# compiled on a busy machine.
SILENCE_SECONDS = 300

# How much of an error the table shows.
SHOWN_CHARACTERS = 200

# Lines that TensorFlow writes above what went wrong.
PREAMBLE = ("Graph execution error", "Detected at node", "File ", "<stack traces", "Exception enc")


def main(argv=None):
    """The program.

    Args:
        argv: the arguments after the program's name; None for the command line's.

    Returns:
        The exit status: 0 if all is right, else 1.
    """
    parser = argparse.ArgumentParser(
        prog="python -m bert_tf.check_devices",
        description="Checks this machine's devices: what works, how right, how fast.",
    )
    parser.add_argument("--quick", action="store_true", help="leave the speeds of BERT-base out")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # what the program gives itself
    arguments = parser.parse_args(argv)
    if arguments.work:
        return work(Path(arguments.work))
    gpus = describe_machine()
    checked = run_checks(check_tasks(gpus), gpus)
    print(
        "\nOne training step, compared with the CPU's in float32 without XLA (mirrored: "
        f"{'all GPUs' if gpus else 'two logical CPUs'}; multi_worker: two processes with "
        f"{'a GPU' if gpus > 1 else 'the CPU'} each):\n"
    )
    print_table(CHECK_HEADINGS, map(check_row, checked))
    measured = run_speeds(gpus, checked, arguments.quick)
    print("\nSpeeds:\n")
    print_table(SPEED_HEADINGS, map(speed_row, measured))
    if gpus:
        print("\nfloat32 on GPUs: TF32, TensorFlow's default, is off where compared.")
    wrong = sum(answer["result"] != "ok" for _, answer in checked + measured)
    total = len(checked + measured)
    print(f"\n{wrong} of {total} are not right." if wrong else f"\nAll {total} are right.")
    return 1 if wrong else 0


def describe_machine():
    """Prints versions and devices.

    Returns:
        How many GPUs TensorFlow sees.
    """
    tf = _import_tensorflow()
    import keras

    from bert_tf.precision import BFLOAT16_FLAGS

    build = tf.sysconfig.get_build_info()
    names = {"CUDA": "cuda_version", "cuDNN": "cudnn_version"}
    built = ", ".join(f"{name} {build[key]}" for name, key in names.items() if key in build)
    print(
        f"Python {platform.python_version()}, TensorFlow {tf.__version__} "
        f"(built for {built or 'CPUs alone'}), Keras {keras.__version__}"
    )
    name, flags = cpu_info()
    bfloat16 = ", ".join(flag for flag in BFLOAT16_FLAGS if flag in flags) or "none"
    print(f"CPU: {name}, {os.cpu_count()} threads; instructions for bfloat16: {bfloat16}")
    gpus = tf.config.list_physical_devices("GPU")
    for i, gpu in enumerate(gpus):
        details = tf.config.experimental.get_device_details(gpu)
        capability = ".".join(map(str, details.get("compute_capability", "?")))
        print(f"GPU:{i}: {details.get('device_name', '?')}, compute capability {capability}")
    if not gpus:
        print("GPU: none that TensorFlow sees")
    sys.stdout.flush()
    return len(gpus)


def _import_tensorflow():
    """Imports TensorFlow, finds the devices, without the lines that it prints about itself."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        import tensorflow as tf

        tf.config.list_physical_devices()
        return tf
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def cpu_info():
    """The name of the CPU and its instructions, as Linux lists them: a string, a set."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    name = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)", text, re.MULTILINE)
    fallback = platform.processor() or platform.machine()
    return name[1] if name else fallback, set(flags[1].split()) if flags else set()


def precisions(gpus):
    """What is computed in: float16 is for GPUs."""
    return ("float32", "bfloat16", "float16") if gpus else ("float32", "bfloat16")


def devices(gpus):
    """The names of the devices that train."""
    return [f"GPU:{i}" for i in range(gpus)] or ["CPU:0"]


def check_tasks(gpus):
    """What is checked: dicts, the several workers' last.

    Args:
        gpus: how many there are.
    """
    where = [("one_device", device) for device in devices(gpus)]
    where += [("mirrored", None), ("multi_worker", None)]
    return [
        {"kind": "check", "strategy": strategy, "device": device, "xla": xla, "precision": name}
        for strategy, device in where
        for xla in (False, True)
        for name in precisions(gpus)
    ]


def run_checks(tasks, gpus):
    """Makes the checks.

    Args:
        tasks: of `check_tasks`.
        gpus: how many there are.

    Returns:
        A list of (task, answer); `run_group` says what an answer is.
    """
    several = [task for task in tasks if task["strategy"] == "multi_worker"]
    alone = [task for task in tasks if task["strategy"] != "multi_worker"]
    return run_groups(
        [(alone, lambda: [{}]), (several, lambda: worker_environments(gpus))], "checks"
    )


def run_speeds(gpus, checked, quick):
    """Measures matrix products on every device, and BERT-base on the first.

    Args:
        gpus: how many there are.
        checked: what `run_checks` returned: XLA is off where it failed.
        quick: whether BERT-base is left out.

    Returns:
        A list of (task, answer).
    """
    products = [
        {"kind": "product", "strategy": "one_device", "device": device, "precision": name}
        for device in devices(gpus)
        for name in precisions(gpus)
    ]
    measured = run_groups([(products, lambda: [{}])], "matrix products")
    if quick:
        return measured
    device = devices(gpus)[0]
    speeds = {t["precision"]: a.get("speed", 0) for t, a in measured if t["device"] == device}
    names = list(dict.fromkeys(["float32", max(speeds, key=speeds.get)]))
    for name in names:
        works = all(
            answer["result"] == "ok"
            for task, answer in checked
            if task["device"] == device and task["xla"] and task["precision"] == name
        )
        task = {"kind": "base", "strategy": "one_device", "device": device, "precision": name}
        # In a process of its own: the memory that it needed is the process's.
        group = [{**task, "xla": "auto" if works else "off"}], lambda: [{}]
        measured += run_groups([group], f"BERT-base in {name}")
    return measured


# --- processes


def run_groups(groups, title):
    """Does groups of tasks at the same time, those of a group one after the other.

    Args:
        groups: a list of (tasks, environments), as `run_group` takes them.
        title: of the progress bar.

    Returns:
        A list of (task, answer).
    """
    answers = [[] for _ in groups]
    running = dict(enumerate(run_group(*group) for group in groups))
    with tqdm(total=sum(len(tasks) for tasks, _ in groups), desc=title, leave=False) as bar:
        while running:
            time.sleep(0.05)
            for i, group in list(running.items()):
                for answer in group:
                    if answer is None:
                        break
                    answers[i].append(answer)
                    bar.update()
                else:
                    del running[i]
    return [
        pair
        for (tasks, _), found in zip(groups, answers, strict=True)
        for pair in zip(tasks, found, strict=True)
    ]


def run_group(tasks, environments):
    """Does the tasks one after the other in new processes; in others, where those die.

    Args:
        tasks: dicts; "kind" is a key of `KINDS`.
        environments: a function that returns the variables to set in each of the processes;
            all of these do every task, together.

    Yields:
        An answer to each task: a dict with "result", which is "ok", "wrong: ..." or
        "failed: ...", and numbers. None whenever the next one is not there yet.
    """
    done = 0
    while done < len(tasks):
        for answer in _attempt(tasks[done:], environments()):
            done += answer is not None
            yield answer


def _attempt(tasks, environments):
    """As `run_group`, until the processes can do no more; one answer at least."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"tasks{i}" for i in range(len(environments))]
        processes = []
        try:
            for path, environment in zip(paths, environments, strict=True):
                processes.append(_start(path, tasks, environment))
            given, heard, last = 0, 0, time.monotonic()
            while given < len(tasks):
                # In this order: what a process wrote before its end is read.
                ended = [process.poll() is not None for process in processes]
                answers = [_read_answers(path) for path in paths]
                if sum(map(len, answers)) > heard:
                    heard, last = sum(map(len, answers)), time.monotonic()
                while given < min(map(len, answers)):
                    answer = _worst([each[given] for each in answers])
                    given += 1
                    yield answer
                    if len(processes) > 1 and answer["result"].startswith("failed"):
                        return  # sums that only some of them added up would be in the way
                if given == len(tasks):
                    return
                dead = [i for i, each in enumerate(answers) if ended[i] and len(each) < len(tasks)]
                if dead or time.monotonic() - last > SILENCE_SECONDS:
                    known = [each[given] for each in answers if len(each) > given]
                    known.append({"result": f"failed: {_reason(dead, processes, paths)}"})
                    yield _worst(known)
                    return
                yield None
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _start(path, tasks, environment):
    """Starts a process that does the tasks."""
    path.write_text(json.dumps(tasks), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    settings = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "KERAS_BACKEND": "tensorflow",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",  # several processes share a GPU
    }
    with open(path.with_suffix(".err"), "w") as errors:
        return subprocess.Popen(
            [*COMMAND, "--work", str(path)],
            env={**inherited, **settings, **environment},
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )


def _read_answers(path):
    """The answers that a process has written so far."""
    try:
        text = path.with_suffix(".answers").read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _worst(answers):
    """The first that is not "ok", else the one with the largest difference."""
    bad = [answer for answer in answers if answer["result"] != "ok"]
    return bad[0] if bad else max(answers, key=lambda answer: answer.get("difference", 0))


def _reason(dead, processes, paths):
    """Why there is no answer."""
    if not dead:
        return f"no answer for {SILENCE_SECONDS} s"
    status = processes[dead[0]].returncode
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    text = paths[dead[0]].with_suffix(".err").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    # The line of a check in C++ that failed, with a stack below.
    fatal = [line for line in lines if re.match(r"F\d{4} |F\d{4}-", line)]
    return f"the process ended with {name}: {(fatal or lines)[-1].strip()}"[:SHOWN_CHARACTERS]


def worker_environments(gpus):
    """What makes two processes on this machine the workers of one run.

    Args:
        gpus: with two at least, each worker has one of its own; else the CPU.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
            ),
            "CUDA_VISIBLE_DEVICES": visible[i] if gpus > 1 else "-1",
        }
        for i in range(2)
    ]


def work(path):
    """Does the tasks of a file and writes an answer to each beside it, in one of the processes.

    Args:
        path: where `_start` put the tasks.

    Returns:
        The exit status: 1 if a worker among several failed, for then its sums have stopped.
    """
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    with open(path.with_suffix(".answers"), "w", encoding="utf-8") as file:
        for task in json.loads(path.read_text(encoding="utf-8")):
            answer = answer_to(task)
            print(json.dumps(answer), file=file, flush=True)
            if "TF_CONFIG" in os.environ and answer["result"].startswith("failed"):
                return 1
    if "TF_CONFIG" in os.environ:
        from bert_tf.distribution import barrier

        barrier(strategy_of(task["strategy"]))
    return 0


def answer_to(task):
    """Does one task.

    Args:
        task: a dict; "kind" is a key of `KINDS`.

    Returns:
        An answer, see `run_group`: an exception is one too.
    """
    try:
        return KINDS[task["kind"]](task)
    except Exception as error:  # whatever it is, the next task may work
        return {"result": f"failed: {first_line(error)}"}


def first_line(error):
    """What an exception says, in one line.

    Args:
        error: an exception; TensorFlow's begin with lines that say nothing.
    """
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(PREAMBLE)]
    # XLA's own line; the error's below the code that was being traced.
    told = [line for line in lines if "XLA" in line or re.match(r"\w+Error: ", line)]
    line = re.sub(r"\[_XlaMustCompile[^]]*\]", "", [*told, *lines, ""][0])
    return f"{type(error).__name__}: {line}"[:SHOWN_CHARACTERS]


# --- tasks


@functools.cache
def strategy_of(name):
    """The strategy, once for each process: its sums are numbered."""
    import tensorflow as tf

    from bert_tf.distribution import make_strategy

    # Not `make_strategy`, which refuses it to a worker: the reference is computed there too.
    return tf.distribute.get_strategy() if name == "one_device" else make_strategy(name)


@contextlib.contextmanager
def scope_of(task):
    """Where a task's variables are made and its step is run."""
    import tensorflow as tf

    strategy = strategy_of(task["strategy"])
    device = tf.device(task["device"]) if task["device"] else contextlib.nullcontext()
    with device, strategy.scope():
        yield strategy


def check_step(task):
    """Compares one training step with the CPU's.

    Args:
        task: of `check_tasks`.

    Returns:
        An answer with "difference".
    """
    import tensorflow as tf

    # Before anything else is computed, as several workers need it.
    strategy_of(task["strategy"])
    tf.config.experimental.enable_tensor_float_32_execution(False)
    found = differences(tiny_step(task), reference())
    worst = max(found, key=lambda name: np.nan_to_num(found[name], nan=np.inf))
    good = found[worst] <= TOLERANCES[task["precision"]]  # False for nan too
    result = "ok" if good else f"wrong: {worst} by {found[worst]:.1e}"
    return {"result": result, "difference": float(found[worst])}


@functools.cache
def reference():
    """What `tiny_step` returns on the CPU in float32, without XLA."""
    return tiny_step(
        {"strategy": "one_device", "device": "CPU:0", "xla": False, "precision": "float32"}
    )


def differences(numbers, expected):
    """How far the numbers of a step are from those expected, relative to these.

    Args:
        numbers: what `tiny_step` returns.
        expected: likewise, of one device.

    Returns:
        A dict of floats; "weights" is the worst device's.
    """
    found = {name: abs(numbers[name] / expected[name] - 1) for name in ("loss", "gradient norm")}
    change = expected["weights"][0]  # [W]
    apart = np.linalg.norm(numbers["weights"] - change, axis=1)  # [devices]
    return {**found, "weights": np.max(apart) / np.linalg.norm(change)}


def tiny_step(task):
    """One training step of the tiny BERT, always the same weights and examples.

    Args:
        task: a dict with "strategy", "device", "xla" and "precision".

    Returns:
        A dict: "loss", "gradient norm" and "weights" [devices, W], by how much they changed.
    """
    from bert_tf.step import TrainingStep

    config = BertConfig(**TINY)
    with scope_of(task) as strategy:
        parts = make_parts(config, task["precision"], LEARNING_RATE, EPSILON)
        weights = parts["model"].trainable_variables
        # Not the initializers' numbers, which depend on the device.
        rng = np.random.default_rng(SEED)
        start = [rng.normal("gamma" in v.path, 0.1, v.shape).astype(np.float32) for v in weights]
        for variable, value in zip(weights, start, strict=True):
            variable.assign(value)
        step = TrainingStep(strategy=strategy, xla=task["xla"], xla_update=task["xla"], **parts)
        metrics = step(deal(random_batch(config, *TINY_BATCH), strategy))
        copies = [strategy.experimental_local_results(v.value) for v in weights]
        devices = zip(*copies, strict=True)
        flat = np.stack([flatten([v.numpy() for v in device]) for device in devices])
    return {
        "loss": float(metrics["loss"]),
        "gradient norm": float(metrics["gradient_norm"]),
        "weights": flat - flatten(start),
    }


def flatten(arrays):
    """All numbers of some arrays, as one vector."""
    return np.concatenate([array.ravel() for array in arrays])


def make_parts(config, precision, learning_rate, epsilon):
    """Model, optimizer and loss scale, for `TrainingStep`; in the strategy's scope."""
    from bert_tf.loss_scale import LossScale
    from bert_tf.model import BertModel
    from bert_tf.optimization import AdamWeightDecay
    from bert_tf.precision import POLICIES
    from bert_tf.pretraining import PretrainingModel

    model = PretrainingModel(BertModel(config, dtype=POLICIES[precision]))
    optimizer = AdamWeightDecay(learning_rate, epsilon=epsilon)
    optimizer.build(model.trainable_variables)
    loss_scale = LossScale() if precision == "float16" else None
    return {"model": model, "optimizer": optimizer, "loss_scale": loss_scale}


def random_batch(config, batch, length, predictions):
    """Features of a global batch, always the same ones; every other row is half padding."""
    rng = np.random.default_rng(SEED)
    mask = np.ones((batch, length), np.int32)
    mask[::2, length // 2 :] = 0
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, length)).astype(np.int32) * mask,
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, (batch, length)).astype(np.int32) * mask,
        "masked_lm_positions": np.tile(np.arange(1, predictions + 1, dtype=np.int32), (batch, 1)),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions)).astype(np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1)).astype(np.int32),
        "next_sentence_weights": np.ones(batch, np.float32),
    }


def deal(batch, strategy):
    """The global batch, an equal part for each of the strategy's replicas."""
    import tensorflow as tf

    parts = {k: np.split(v, strategy.num_replicas_in_sync) for k, v in batch.items()}
    return strategy.experimental_distribute_values_from_function(
        lambda context: {
            k: tf.constant(v[context.replica_id_in_sync_group]) for k, v in parts.items()
        }
    )


def measure_products(task):
    """Times products of two square matrices.

    Args:
        task: a dict with "device" and "precision".

    Returns:
        An answer with "speed" in floating-point operations a second.
    """
    import tensorflow as tf

    size = PRODUCT_SIZES[task["device"][:3]]

    @tf.function
    def run(matrix, count):
        product = matrix
        for _ in tf.range(count):
            product = tf.matmul(matrix, product)
        return tf.reduce_sum(tf.cast(product[0], tf.float32))

    def seconds(count):
        start = time.perf_counter()
        run(matrix, tf.constant(count)).numpy()
        return (time.perf_counter() - start) / count

    with tf.device(task["device"]):
        # Scaled so that products of it stay as large as it is.
        matrix = tf.random.stateless_normal([size, size], [SEED, 0], stddev=size**-0.5)
        matrix = tf.cast(matrix, task["precision"])
        seconds(1)  # traces it, chooses kernels
        count = min(MAX_PRODUCTS, 1 + int(PRODUCT_SECONDS / seconds(1)))
        return {"result": "ok", "speed": 2 * size**3 / seconds(count)}


def measure_base(task):
    """Times training steps of BERT-base, dropout included, after one that compiles.

    Args:
        task: a dict with "device", "precision" and "xla", "auto" or "off".

    Returns:
        An answer with "xla", "batch", "steps_per_second" and "memory", the most bytes that the
        GPU held, or on a CPU the process, None where that is unknown.
    """
    import tensorflow as tf

    from bert_tf.compilation import choose_compilation, compile_between_products
    from bert_tf.step import TrainingStep

    kind = task["device"][:3]
    compiled = choose_compilation(task["xla"], task["precision"])
    if compiled.between_products:
        compile_between_products()
    config = BertConfig.from_preset("base", vocab_size=BASE_VOCAB_SIZE)
    with scope_of(task) as strategy:
        parts = make_parts(config, task["precision"], 1e-4, 1e-6)
        step = TrainingStep(
            strategy=strategy, xla=compiled.whole, xla_update=compiled.update, **parts
        )
        batch = deal(random_batch(config, *BASE_BATCHES[kind]), strategy)
        loss = float(step(batch)["loss"])
        start = time.perf_counter()
        for _ in range(BASE_STEPS[kind]):
            metrics = step(batch)
        loss = float(metrics["loss"])  # waits for the device
        seconds = (time.perf_counter() - start) / BASE_STEPS[kind]
    if kind == "GPU":
        memory = tf.config.experimental.get_memory_info(task["device"])["peak"]
    else:
        memory = peak_memory()
    return {
        "result": "ok" if np.isfinite(loss) else f"wrong: the loss is {loss}",
        "xla": str(compiled),
        "batch": BASE_BATCHES[kind],
        "steps_per_second": 1 / seconds,
        "memory": memory,
    }


def peak_memory():
    """The most memory in bytes that this process ever held; None where Linux does not say."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s*(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


KINDS = {"check": check_step, "product": measure_products, "base": measure_base}


# --- tables

CHECK_HEADINGS = ("device or strategy", "XLA", "precision", "difference", "result")
SPEED_HEADINGS = ("device", "what", "XLA", "precision", "speed", "memory", "result")


def check_row(pair):
    """A row of the first table from (task, answer)."""
    task, answer = pair
    difference = f"{answer['difference']:.1e}" if "difference" in answer else ""
    where = task["device"] or task["strategy"]
    return where, "on" if task["xla"] else "off", task["precision"], difference, answer["result"]


def speed_row(pair):
    """A row of the second table from (task, answer)."""
    task, answer = pair
    kind = task["device"][:3]
    if task["kind"] == "product":
        what = f"matrix product, {PRODUCT_SIZES[kind]} x {PRODUCT_SIZES[kind]}"
        speed = f"{answer['speed'] / 1e12:.3g} TFLOP/s" if "speed" in answer else ""
        return task["device"], what, "", task["precision"], speed, "", answer["result"]
    batch, length, _ = BASE_BATCHES[kind]
    speed = memory = xla = ""
    if "steps_per_second" in answer:
        steps = answer["steps_per_second"]
        speed = f"{steps:.3g} steps/s, {steps * batch:.3g} examples/s"
        memory = f"{answer['memory'] / 2**30:.1f} GiB" if answer["memory"] else ""
        xla = answer["xla"]
    what = f"BERT-base, {batch} x {length}"
    return task["device"], what, xla, task["precision"], speed, memory, answer["result"]


def print_table(headings, rows):
    """Prints rows of strings in columns."""
    rows = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
