"""Declares what every training program makes of its flags before TensorFlow is started."""

import dataclasses
from typing import Generic, TypeVar

from bert_tf.config import EncoderConfig
from bert_tf.training.cluster import Cluster
from model_formats.training_record import Stage
from run_scripts.flags.begun import Begun
from run_scripts.flags.distillation import GivenTeacher
from run_scripts.flags.training import TrainingFlags
from run_scripts.given_model import GivenModel
from tokenization.loading import Tokenizer

Flags = TypeVar("Flags", bound=TrainingFlags)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job(Generic[Flags]):
    """A run as its flags define it, checked as far as possible without TensorFlow."""

    flags: Flags  # with every default resolved
    model: GivenModel  # the model that the flags name
    config: EncoderConfig  # the model's
    begun: Begun  # the earlier training in --output_dir, if any
    source: str | None  # the checkpoint to start from, to resume or to use; None for new weights
    stages: list[Stage]  # how the model of that checkpoint was trained
    tokenizer: Tokenizer | None  # the model's or its records', if there is one
    cluster: Cluster | None
    teacher: GivenTeacher | None

    @property
    def earlier_stages(self) -> list[Stage]:
        """The stages before the training of this run, of which a resumed one is the last."""
        return self.stages[:-1] if self.model.resumes else self.stages
