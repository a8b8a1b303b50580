"""The shipped flag files parse; the two parts of each pre-training job fit together."""

import fnmatch

import pytest

from benchmarks.reference.sizes import SIZES
from bert_tf.memory_estimate import GIB, estimate_bytes
from create_pretraining_data.instances.packing import row_predictions
from create_pretraining_data.records.shard_names import expand_output_file
from finetuning.datasets import DATASETS
from finetuning.ner.data import FORMATS
from run_scripts.classifier import ClassifierFlags
from run_scripts.create_data import CreateDataFlags, choose_objective
from run_scripts.downstream.training import training_steps
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import check_finetune_flags, unused_steps
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags, check_flags
from run_scripts.flags.training import given_config
from run_scripts.ner import NerFlags
from run_scripts.race import RaceFlags
from run_scripts.squad import SquadFlags
from run_scripts.tools.glue_plan import BENCHMARKS, QUESTION_TASKS, find_flagfile
from tests.support.paths import ROOT

FLAGFILES = ROOT / "run_scripts" / "flagfiles"
LARGE_JOBS = ("bert_base_8gpu", "bert_large_8gpu", "albert_base_8gpu")
JOBS = (
    "bert_mini", "albert_mini", "bert_base", "bert_base_2048", "albert_base", "electra_small",
    "quickstart", *LARGE_JOBS,
)  # fmt: skip


def reads_all_of(pattern, output_file):
    """Whether a --input_file names all files of an --output_file."""
    return all(fnmatch.fnmatch(path, pattern) for path in expand_output_file(output_file))


@pytest.mark.parametrize("job", JOBS)
def test_data_and_training_fit(job, monkeypatch):
    monkeypatch.chdir(FLAGFILES.parents[1])  # the paths in them are from the project's root
    given = ["--input_file=a", "--output_file=b"] if job == "quickstart" else []
    data = parse(CreateDataFlags, ["create", f"--flagfile={FLAGFILES}/{job}_data.flags", *given])
    plan = choose_objective(data)
    data = resolve_model_defaults(data, plan.model_type)
    given = ["--input_file=b", "--output_dir=c", "--do_train"] if job == "quickstart" else []
    train = parse(PretrainFlags, ["run", f"--flagfile={FLAGFILES}/{job}_pretrain.flags", *given])
    file = given_config(train)
    model_type, config = file.model_type, file.config_with(32000)
    train = resolve_model_defaults(train, model_type)
    check_flags(train, train)
    assert plan.model_type == model_type or job == "electra_small"  # --objective=none says no type
    assert plan.objective == {"bert": "nsp", "albert": "sop", "electra": "none"}[model_type]
    # build_vocab.py's, which its vocabulary alone does not describe.
    assert data.tokenizer_dir and not (data.vocab_file or data.tokenizer)
    assert reads_all_of(train.input_file, data.output_file)
    assert data.max_seq_length == train.max_seq_length
    assert data.max_predictions_per_seq == train.max_predictions_per_seq
    assert data.max_predictions_per_seq >= round(data.max_seq_length * data.masked_lm_prob)
    assert train.max_seq_length <= config.max_position_embeddings
    assert config.type_vocab_size == 2
    replaced = {"electra_small": (0.85, 0)}.get(job, (0.8, 0.1))  # as Google's programs do
    assert (data.mask_replace_prob, data.random_replace_prob) == replaced


def test_the_second_phase_continues_from_the_first():
    """The same data but for its length; nine updates of the first to one of the second."""

    def read(flags_class, name):
        return parse(flags_class, ["run", f"--flagfile={FLAGFILES}/{name}.flags"])

    first, second = (read(PretrainFlags, f"bert_base{name}_pretrain") for name in ("", "_512"))
    assert second.model_dir == first.output_dir != second.output_dir
    assert not second.bert_config_file and not second.init_checkpoint  # the folder has both
    assert first.num_train_steps == 9 * second.num_train_steps == 900_000
    assert first.train_batch_size == second.train_batch_size
    data, longer = (read(CreateDataFlags, f"bert_base{name}_data") for name in ("", "_512"))
    assert longer.output_file == second.input_file
    lengths = (longer.max_seq_length, longer.max_predictions_per_seq)
    assert lengths == (second.max_seq_length, second.max_predictions_per_seq) == (512, 77)
    for name in ("input_file", "objective", "do_whole_word_mask", "dupe_factor", "masked_lm_prob"):
        assert getattr(data, name) == getattr(longer, name)


# Of the published settings: updates in both phases, with a batch of 4,096 and a rate of 0.00176.
LARGE_UPDATES = {"bert_base": 62_500, "bert_large": 125_000, "albert_base": 125_000}


@pytest.mark.parametrize("name", LARGE_UPDATES)
def test_jobs_for_eight_gpus(name, monkeypatch):
    """Two phases of nine to one, on packed rows whose masks are drawn; held-out text; 40 GB."""
    monkeypatch.chdir(FLAGFILES.parents[1])
    jobs = {128: f"{name}_8gpu", 512: f"{name}_8gpu_512"}
    updates, config = [], None
    for length, job in jobs.items():
        data = parse(CreateDataFlags, ["create", f"--flagfile={FLAGFILES}/{job}_data.flags"])
        train = parse(PretrainFlags, ["run", f"--flagfile={FLAGFILES}/{job}_pretrain.flags"])
        config = config or given_config(train).config
        assert data.packing and data.masking == "dynamic" and data.output_file.endswith("@256")
        predictions = row_predictions(length, data.masked_lm_prob)
        for values in (data, train):
            sizes = (values.max_seq_length, values.max_predictions_per_seq)
            assert sizes == (length, predictions)
        assert reads_all_of(train.input_file, data.output_file)
        held_out = f"output/{job}/heldout.tfrecord"
        assert train.eval_input_file == held_out and train.eval_every_steps
        assert not fnmatch.fnmatch(held_out, train.input_file)
        assert (train.precision, train.optimizer) == ("bfloat16", "lamb")
        assert (train.train_batch_size, train.learning_rate) == (4096, 0.00176)
        microbatches = 8 * train.gradient_accumulation_steps
        assert train.train_batch_size % microbatches == train.eval_batch_size % 8 == 0
        rows = train.train_batch_size // microbatches
        sizes = (rows, length, predictions, train.precision)
        assert 20 * GIB < estimate_bytes(config, *sizes) < 36 * GIB  # no needless accumulation
        updates.append(train.num_train_steps)
    assert train.model_dir == f"output/{name}_8gpu" != train.output_dir
    assert sum(updates) == LARGE_UPDATES[name] and updates[0] == 9 * updates[1]


# (task, model) -> learning rate, batch, updates (epochs for BERT), warm-up, longest example: of
# ALBERT the table of its paper's appendix A.4
SETTINGS = {
    ("cola", "albert"): (1e-5, 16, 5336, 320, 512),
    ("sts-b", "albert"): (2e-5, 16, 3598, 214, 512),
    ("sst-2", "albert"): (1e-5, 32, 20935, 1256, 512),
    ("mnli", "albert"): (3e-5, 128, 10000, 1000, 512),
    ("qnli", "albert"): (1e-5, 32, 33112, 1986, 512),
    ("qqp", "albert"): (5e-5, 128, 14000, 1000, 512),
    ("rte", "albert"): (3e-5, 32, 800, 200, 512),
    ("mrpc", "albert"): (2e-5, 32, 800, 200, 512),
    ("wnli", "albert"): (2e-5, 16, 2000, 250, 512),
    ("xnli", "bert"): (5e-5, 32, 2.0, 0.1, 128),  # Google's multilingual README
    **{(task, "bert"): (2e-5, 32, 3, 0.1, 128) for task in BENCHMARKS["glue"]},
}

# Tasks whose settings are this project's own, with kinds of models.
KOREAN = [
    (task, kind)
    for task in BENCHMARKS["korean"]
    if task not in QUESTION_TASKS
    for kind in ("bert", "albert", "small")
]


def read_finetuning(path, model_type, *given, flags_class=ClassifierFlags):
    """The flags of a fine-tuning job, after the program's own checks."""
    argv = ["run", f"--flagfile={path}", "--data_dir=a", "--output_dir=b", *given]
    flags_class = NerFlags if "klue-ner" in path.stem else flags_class
    parsed = parse(flags_class, [*argv, f"--{model_type}_config_file=c"])
    values = resolve_model_defaults(parsed, model_type, **unused_steps(parsed))
    check_finetune_flags(values)
    return values


def flagfile_of(task, kind):
    """The flag file for a task and a kind of model, of `SETTINGS` or `KOREAN`."""
    if task == "xnli":  # of no benchmark
        return kind, FLAGFILES / "bert_xnli.flags"
    benchmark = next(name for name, tasks in BENCHMARKS.items() if task in tasks)
    model_type, hidden_size = ("bert", 256) if kind == "small" else (kind, 768)
    return model_type, find_flagfile(benchmark, model_type, hidden_size, task)


@pytest.mark.parametrize(("task", "kind"), (*SETTINGS, *KOREAN))
def test_fine_tuning(task, kind, monkeypatch):
    monkeypatch.chdir(FLAGFILES.parents[1])
    model_type, path = flagfile_of(task, kind)
    named = [] if task in path.stem else [f"--task_name={task}"]
    values = read_finetuning(path, model_type, *named)
    assert values.task_name == task and task in (*DATASETS, *FORMATS)
    assert values.do_train and values.do_eval and values.optimizer == "adamw"
    if (task, kind) not in SETTINGS:
        return
    rate, batch, steps, warmup, length = SETTINGS[task, kind]
    assert (values.learning_rate, values.train_batch_size) == (rate, batch)
    assert values.max_seq_length == length
    if kind == "albert":
        assert training_steps(values, 10) == (steps, warmup)
    else:
        assert (values.num_train_epochs, values.warmup_proportion) == (steps, warmup)
        assert training_steps(values, 100 * batch) == (steps * 100, steps * 100 * warmup)


# Of the READMEs' commands: batch, learning rate, epochs or updates, length, SQuAD 2.0.
QUESTIONS = {
    "bert_squad1": (12, 3e-5, 2.0, 384, False),
    "bert_squad2": (24, 3e-5, 2.0, 384, True),
    "albert_squad1": (48, 5e-5, 2.0, 384, False),
    "albert_squad2": (48, 5e-5, 2.0, 384, True),
    "korean_korquad": (12, 3e-5, 2.0, 384, False),
    "korean_klue-mrc": (16, 3e-5, 5.0, 512, True),
    "korean_small_korquad": (32, 3e-4, 2.0, 384, False),
    "korean_small_klue-mrc": (32, 3e-4, 5.0, 512, True),
    "albert_race": (32, 1e-5, 12000, 512, None),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name):
    first, _, task = name.replace("_small_", "_").partition("_")
    model_type = "albert" if first == "albert" else "bert"
    flags_class = RaceFlags if task == "race" else SquadFlags
    values = read_finetuning(FLAGFILES / f"{name}.flags", model_type, flags_class=flags_class)
    batch, rate, passes, length, version_2 = QUESTIONS[name]
    assert (values.train_batch_size, values.learning_rate) == (batch, rate)
    assert values.max_seq_length == length and values.do_train
    assert getattr(values, "version_2_with_negative", None) == version_2
    if task == "race":
        assert training_steps(values, 10) == (passes, 1000) and values.do_eval
    else:
        # KLUE's authors train without warm-up.
        warmup = 0 if name == "korean_klue-mrc" else passes * 10
        assert training_steps(values, 100 * batch) == (passes * 100, warmup)
        assert values.do_predict
        assert values.task_name == (task if first == "korean" else "squad")


def test_every_task_has_settings():
    tasks = {task for task, _ in (*SETTINGS, *KOREAN)}
    # mismnli is what mnli measures beside its own dev split.
    assert tasks - set(FORMATS) | {"mismnli"} == set(DATASETS)


def test_no_flag_file_is_left_out():
    jobs = (*JOBS, "bert_base_512", *(f"{job}_512" for job in LARGE_JOBS))
    names = {f"{job}_{part}" for job in jobs for part in ("data", "pretrain")}
    names |= set(QUESTIONS)
    names.add("glue_albert")  # which is what the files of its tasks name
    names.add("reference_model_export")  # tests/export/test_reference_model.py
    names |= {"reference_data", "reference_heldout"}
    names |= {f"reference_{s.name}_{phase.length}" for s in SIZES.values() for phase in s.phases}
    names |= {flagfile_of(task, kind)[-1].stem for task, kind in (*SETTINGS, *KOREAN)}
    paths = [*FLAGFILES.glob("*.flags")]
    assert {path.stem for path in paths} == names
    for path in paths:  # each says what it is
        assert path.read_text(encoding="utf-8").startswith("# "), path
