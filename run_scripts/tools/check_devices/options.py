"""The ways of training whose numbers are checked, besides devices, XLA and precisions."""

import dataclasses

PLAIN = "plain"


@dataclasses.dataclass(frozen=True)
class Option:
    """A way of training the tiny BERT of `steps`."""

    optimizer: str = "adamw"
    batch: str = PLAIN  # a key of `batches.BATCHES`
    sizes: dict = dataclasses.field(default_factory=dict)  # of the model, where others than usual
    settings: dict = dataclasses.field(default_factory=dict)  # fields of `StepConfig`
    steps: int = 1
    # The option whose step on the CPU has the same numbers.
    reference: str = PLAIN
    # Whether there is such a reference: every replica drops other activations.
    compared: bool = True


_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}

OPTIONS = {
    PLAIN: Option(),
    "lamb": Option(optimizer="lamb", reference="lamb"),
    "dropout": Option(sizes=_DROPOUT, reference="dropout"),
    "accumulation": Option(settings={"gradient_accumulation_steps": 2}),
    "recompute": Option(settings={"recompute": "block"}),
    "short rows": Option(batch="short rows", reference="short rows"),
    # A batch that is cut to 8 of 16 positions has the numbers of the whole one.
    "buckets": Option(
        batch="bucket", settings={"bucket_boundaries": (8, 16)}, reference="short rows"
    ),
    "packed rows": Option(batch="packed", reference="packed rows"),
    # All together, for replicas that must stay equal.
    "three steps": Option(
        optimizer="lamb",
        batch="packed",
        sizes=_DROPOUT,
        settings={"gradient_accumulation_steps": 2, "recompute": "block"},
        steps=3,
        compared=False,
    ),
}

# Those to check on one device, and on several.
ON_ONE_DEVICE = ("lamb", "dropout", "accumulation", "recompute", "buckets", "packed rows")
ON_SEVERAL = ("lamb", "accumulation", "recompute", "buckets", "packed rows", "three steps")
