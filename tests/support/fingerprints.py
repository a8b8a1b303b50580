"""Writes checksums of what the programs make, to compare two versions of the code on one machine.

    python -m tests.support.fingerprints before.json
    python -m tests.support.fingerprints after.json --expected=before.json

Records of every kind, weights and moments after 20 updates, a fine-tuned model's predictions, the
flags of every program. Only launchers, console scripts and flags are named here, which stay as
they are when files move. Exit status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Starts a program with two logical devices, which stand in for two GPUs.
START = """
import sys
if {devices} > 1:
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from {module} import {function}
sys.argv[0] = "{function}"
sys.exit({function}())
"""

RECORDS = {
    "nsp": ("--objective=nsp",),
    "sop": ("--objective=sop", "--ngram=3", "--do_whole_word_mask"),
    "sop-packed": ("--objective=sop", "--packing"),
    "nsp-dynamic": ("--objective=nsp", "--masking=dynamic"),
}
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
MODELS = {"bert": {}, "albert": {"embedding_size": 16}}
OPTIMIZERS = {"bert": "adamw", "albert": "lamb"}

# What numbers of a help may be written as: "--name=<kind>  (default)".
FLAG = re.compile(r"^  (--[a-z_0-9]+=?.*)$", re.MULTILINE)


def console_scripts():
    """The programs: name -> (module, function), as setup.py declares them."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    return {m[1]: (m[2], m[3]) for m in re.finditer(r'"([a-z-]+) = ([\w.]+):(\w+)"', text)}


def run(name, *flags, devices=1):
    """Runs a program, which must end well; what it prints."""
    module, function = console_scripts()[name]
    program = START.format(devices=devices, module=module, function=function)
    done = subprocess.run(
        [sys.executable, "-c", program, *flags],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"error: {name} {' '.join(flags)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def digest(content):
    """A short checksum of bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


def fingerprint_records(folder):
    """Makes a vocabulary and records of it; name -> checksum."""
    text = ROOT / "sample_corpus" / "heldout.txt"
    vocabulary = folder / "vocabulary"
    flags = (f"--input_file={text}", f"--output_dir={vocabulary}", "--vocab_size=1500")
    run("build-vocab", *flags, "--analyser=none")
    found = {"vocab.txt": digest((vocabulary / "vocab.txt").read_bytes())}
    for name, flags in RECORDS.items():
        path = folder / f"{name}.tfrecord"
        run(
            "create-pretraining-data", f"--input_file={text}", f"--output_file={path}",
            f"--tokenizer_dir={vocabulary}", "--max_seq_length=64", "--dupe_factor=2",
            "--max_predictions_per_seq=10", "--num_workers=1", *flags,
        )  # fmt: skip
        found[f"records {name}"] = digest(path.read_bytes())
        sidecar = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        keys = sorted(key for key in sidecar["settings"] if not key.startswith("input "))
        found[f"sidecar {name}"] = " ".join([*sidecar, *keys])
    return found


def fingerprint_training(folder):
    """Pre-trains both models; name -> checksum of each array of the checkpoint."""
    import tensorflow as tf

    found = {}
    for kind, extra in MODELS.items():
        config = folder / f"{kind}.json"
        size = len((folder / "vocabulary" / "vocab.txt").read_bytes().splitlines())
        config.write_text(json.dumps({"vocab_size": size, **SIZES, **extra}))
        output = folder / kind
        run(
            "run-pretraining", f"--{kind}_config_file={config}",
            f"--input_file={folder}/{'nsp' if kind == 'bert' else 'sop'}.tfrecord",
            f"--output_dir={output}", "--do_train", "--train_batch_size=8",
            "--gradient_accumulation_steps=2", "--distribution_strategy=mirrored",
            "--num_train_steps=20", "--num_warmup_steps=5", "--learning_rate=1e-3", "--xla=off",
            f"--optimizer={OPTIMIZERS[kind]}",
            devices=2,
        )  # fmt: skip
        reader = tf.train.load_checkpoint(str(output / "model.ckpt-20"))
        for name in sorted(reader.get_variable_to_shape_map()):
            found[f"{kind} {name}"] = digest(reader.get_tensor(name).tobytes())
    return found


def fingerprint_predictions(folder):
    """Fine-tunes what was pre-trained; file -> checksum of its predictions."""
    lines = (ROOT / "sample_corpus" / "heldout.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.strip()][:120]
    data, output = folder / "data", folder / "classifier"
    data.mkdir()
    for name, part in (("train", lines[:80]), ("dev", lines[80:100]), ("test", lines[100:])):
        rows = [f"{line}\t{'long' if len(line) > 30 else 'short'}" for line in part]
        (data / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    run(
        "run-classifier", "--task_name=tsv", f"--data_dir={data}", f"--model_dir={folder}/bert",
        f"--output_dir={output}", "--do_train", "--do_eval", "--do_predict", "--train_step=20",
        "--train_batch_size=8", "--max_seq_length=64", "--learning_rate=1e-3", "--xla=off",
    )  # fmt: skip
    names = ("predictions_test.tsv", "test_results.tsv", "eval_results.txt")
    # The examples' names hold the folder.
    texts = [(output / name).read_text(encoding="utf-8").replace(str(folder), "") for name in names]
    return dict(zip(names, (digest(text.encode()) for text in texts), strict=True))


def fingerprint_flags():
    """Program -> its flags with their kinds and defaults, without the sentences."""
    others = ("run-glue", "run-korean", "check-devices")
    scripts = [name for name in console_scripts() if name not in others]
    return {f"flags {name}": FLAG.findall(run(name, "--helpfull")) for name in scripts}


def main():
    """Writes the checksums, and compares them if there is something to compare with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--expected", type=Path, help="what another version has written")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        found = fingerprint_records(folder)
        found |= fingerprint_training(folder) | fingerprint_predictions(folder)
    found |= fingerprint_flags()
    arguments.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(found)} checksums")
    if arguments.expected:
        expected = json.loads(arguments.expected.read_text())
        names = sorted({*found, *expected})
        other = [name for name in names if found.get(name) != expected.get(name)]
        print("\n".join([*other, f"{len(other)} of {len(names)} differ"]))
        return bool(other)
    return 0


if __name__ == "__main__":
    sys.exit(main())
