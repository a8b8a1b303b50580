"""A comparison of vocabularies: prepares the texts for all, trains and measures one at a time."""

import collections
import contextlib
import dataclasses
import itertools
import json
import random
import sys
from pathlib import Path

from bert_common.progress import with_progress
from bert_tf.checkpoint_files import exists
from bert_tf.config import BertConfig
from create_pretraining_data.records.encoding import encode_record
from create_pretraining_data.records.tfrecord import frame
from run_scripts.pretrain import main as run_pretraining
from run_scripts.reference.curves import FAST_QUANTILE, seconds_per_update
from tokenization import load_tokenizer
from vocabulary_models.measures import (
    checkpoint_loss,
    finetune,
    frequency_bits,
    measure_bits,
    review_arrays,
)
from vocabulary_models.text import (
    Cuts,
    SharedSpans,
    choose_masked,
    find_limits,
    masked_characters,
    passages,
    read_eojeols,
    read_reviews,
    record_format,
    row,
    shares,
    training_examples,
)

TEXT_SEED = 12345  # which spans are masked; not a seed of the models


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a comparison; the defaults are those of the table in docs/tokenizers.md.

    They were found by trials of 400 to 900 steps with one of the vocabularies. The only criterion
    was that masked pieces cost less than by frequency alone: after 300 steps they did; with AdamW,
    or with examples of 80 characters in batches of 32, they did not.

    There is no dropout, as hardly anything is read twice. Fine-tuning is with AdamW.
    """

    preset: str = "tiny"  # of `BertConfig.from_preset`
    characters: int = 32  # the most in an example, spaces included
    batch: int = 64  # examples per update
    steps: int = 2000  # updates of pre-training
    rate: float = 1e-2  # LAMB's peak learning rate, after a warm-up of a tenth of the steps
    held_out: int = 6000  # examples on which bits per character are measured
    reviews: int = 30_000  # non-empty reviews to fine-tune on, the first of the file
    test_reviews: int = 30_000  # likewise, to measure accuracy on
    review_batch: int = 64
    epochs: int = 2
    review_rate: float = 5e-4
    review_length: int = 48  # the most pieces of a review, in every vocabulary


class Contest:
    """The texts of a comparison, prepared alike for all vocabularies.

    Args:
        folders: name -> folder of a tokenizer.
        files: the paths of text, held_out, reviews and test_reviews, by these names.
        settings: `Settings`.
        work_dir: where records, configurations and checkpoints are kept.
    """

    def __init__(self, folders, files, settings, work_dir):
        self.folders, self.settings, self.work_dir = folders, settings, Path(work_dir)
        self.cuts = {name: Cuts(load_tokenizer(folder)) for name, folder in folders.items()}
        all_cuts = list(self.cuts.values())
        spans = SharedSpans(all_cuts)
        documents = read_eojeols(files["text"])
        self.limits = find_limits(documents, spans, settings.characters)
        count = settings.steps * settings.batch
        self.examples = training_examples(
            documents, spans, settings.characters, self.limits, count, TEXT_SEED
        )
        seen = frozenset(Path(files["text"]).read_text(encoding="utf-8").split("\n"))
        others = read_eojeols(files["held_out"], without=seen)
        texts = list(passages(others, all_cuts, settings.characters, self.limits))
        rng = random.Random(TEXT_SEED)
        rng.shuffle(texts)
        chosen = texts[: settings.held_out]
        self.held_out = [choose_masked(eojeols, spans, rng, self.limits) for eojeols in chosen]
        self.reviews, self.test_reviews = (
            read_reviews(files[name], getattr(settings, name), all_cuts, settings.review_length)
            for name in ("reviews", "test_reviews")
        )
        self.limits = dict(zip(self.cuts, self.limits, strict=True))
        self.by_frequency = {name: self._by_frequency(cuts) for name, cuts in self.cuts.items()}
        self.shares = {
            name: (
                shares(documents, cuts),
                shares(others, cuts),
                shares([eojeols for eojeols, _ in self.test_reviews], cuts),
            )
            for name, cuts in self.cuts.items()
        }

    def _by_frequency(self, cuts):
        """Bits per character of the held-out spans without a model: number of pieces, pieces."""
        learned, asked = (
            [cuts.pieces(example.eojeols, span) for example in examples for span in example.masked]
            for examples in (self.examples, self.held_out)
        )
        numbers = collections.Counter(map(len, learned))
        lengths = list(map(len, asked))
        of_number = frequency_bits(numbers, lengths, max([*numbers, *lengths]))
        pieces = collections.Counter(itertools.chain(*learned))
        of_pieces = frequency_bits(pieces, itertools.chain(*asked), cuts.tokenizer.vocab_size)
        characters = masked_characters(self.held_out)
        return of_number / characters, of_pieces / characters

    def config(self, name):
        """The configuration of the model."""
        size = self.cuts[name].tokenizer.vocab_size
        dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
        return BertConfig.from_preset(self.settings.preset, vocab_size=size, **dropout)

    def write(self, name):
        """Writes records of the training examples, and the configuration; returns their paths."""
        records, config = (self.work_dir / f"{name}{end}" for end in (".tfrecord", ".json"))
        config.write_text(json.dumps(dataclasses.asdict(self.config(name))), encoding="utf-8")
        if not records.exists():  # it gets its name once it is complete
            rng, limit = random.Random(TEXT_SEED), self.limits[name]
            examples = with_progress(self.examples, f"records, {name}", "records")
            rows = (row(example, self.cuts[name], limit, rng) for example in examples)
            partial = records.with_suffix(".partial")
            with open(partial, "wb") as file:
                file.writelines(frame(encode_record(r, record_format(limit))) for r in rows)
            partial.rename(records)
        return records, config

    def checkpoint(self, name, seed):
        """The output folder of pre-training."""
        return self.work_dir / f"{name}-{seed}"

    def pretrain(self, name, seed):
        """Runs run_pretraining.py, and measures the model on the held-out text."""
        records, config = self.write(name)
        settings, limit, folder = self.settings, self.limits[name], self.checkpoint(name, seed)
        flags = {
            "bert_config_file": config,
            "input_file": records,
            "output_dir": folder,
            "do_train": "true",
            "max_seq_length": limit.length,
            "max_predictions_per_seq": limit.predictions,
            "train_batch_size": settings.batch,
            "num_train_steps": settings.steps,
            "num_warmup_steps": settings.steps // 10,
            "optimizer": "lamb",
            "learning_rate": settings.rate,
            "random_seed": seed,
            "save_checkpoints_steps": max(1, settings.steps // 10),
            "keep_checkpoint_max": 1,
            "save_summary_steps": max(1, settings.steps // 100),
            "tokenizer_dir": self.folders[name],
        }
        arguments = ["run_pretraining", *(f"--{key}={value}" for key, value in flags.items())]
        with contextlib.redirect_stdout(sys.stderr):
            status = run_pretraining(arguments)
        checkpoint = folder / f"model.ckpt-{settings.steps}"
        if status or not exists(str(checkpoint)):
            sys.exit("stopped: the same command resumes the run")
        loss_of = checkpoint_loss(self.config(name), checkpoint, settings.batch)
        bits = measure_bits(loss_of, self.held_out, self.cuts[name], limit)
        return {
            "bits_at_once": bits.at_once,
            "bits_in_turn": bits.in_turn,
            "seconds": seconds_per_update(str(folder), FAST_QUANTILE),
        }

    def finetune(self, name, seed, pretrained):
        """Fine-tunes the pre-trained model, or a new one; returns its accuracy on test reviews."""
        settings, cuts = self.settings, self.cuts[name]
        checkpoint = self.checkpoint(name, seed) / f"model.ckpt-{settings.steps}"
        accuracy = finetune(
            self.config(name),
            checkpoint if pretrained else None,
            review_arrays(self.reviews, cuts, settings.review_length),
            review_arrays(self.test_reviews, cuts, settings.review_length),
            settings,
            seed,
        )
        return {"accuracy": accuracy}
