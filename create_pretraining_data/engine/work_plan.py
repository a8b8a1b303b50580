"""What a run that makes records has to do: its chunks, its shards, its sizes, its seeds."""

import dataclasses
import hashlib
import os

from create_pretraining_data.engine.splitting import Range
from create_pretraining_data.instances.make_instances import ChunkSettings
from create_pretraining_data.records.shard_names import without_shard
from create_pretraining_data.records.tfrecord import FRAME

# A worker shuffles one bucket at a time in memory.
BUCKET_BYTES = 64_000_000

# For estimates alone. Korean in morphemes and English in WordPiece are both near it; a
# vocabulary of syllables is below.
_BYTES_PER_PIECE = 4.7
# Records for every record that pieces would fill, as measured on Korean Wikipedia at 128 and 512
# pieces: the longer they are, the more of them end with their document before they are full.
# Next-sentence data uses sentences again.
_RECORDS_OF_FULL = {"nsp": 1.5, "sop": 1.0, "none": 1.0}

COMPRESSIONS = ("none", "GZIP")
# What deflating takes a record of 128 pieces to, about; longer ones are smaller.
DEFLATED = 0.35


@dataclasses.dataclass(frozen=True)
class WorkPlan:
    """Everything that decides the files that a run writes, except the tokenizer.

    Attributes:
        chunks: for each chunk its ranges of the input.
        continued: the numbers of the chunks that begin within a document that had to be cut.
        input_format: "text" or "jsonl".
        split_sentences: whether a line is running text, to be split.
        settings: `ChunkSettings`.
        seed: the seed of the run.
        output_files: the files to write, one for each shard.
        compression: one of `COMPRESSIONS`.
        buckets_per_shard: parts that a shard is shuffled in.
        folder: the work folder.
    """

    chunks: list[list[Range]]
    continued: set[int]
    input_format: str
    split_sentences: bool
    settings: ChunkSettings
    seed: int
    output_files: list[str]
    compression: str
    buckets_per_shard: int
    folder: str

    def chunk_size(self, number):
        """Bytes of text of a chunk."""
        return sum(part.size for part in self.chunks[number])

    def files_there(self):
        """The files of the work folder.

        To be asked before a file that may not be there: a network file system may remember for a
        minute that it was not, while another machine writes it.
        """
        return {os.path.join(self.folder, name) for name in os.listdir(self.folder)}

    def chunk_file(self, number):
        """Where the records of a chunk are kept until the shards are made."""
        return os.path.join(self.folder, f"chunk-{number:06d}")

    def shard_marker(self, shard):
        """A file that is there when the shard is."""
        return os.path.join(self.folder, f"shard-{shard:05d}.json")


def seed_of(*parts):
    """A seed of 64 bits out of names and numbers."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def estimate_records_size(text_bytes, settings):
    """About how many bytes the records of a text are, uncompressed.

    Args:
        text_bytes: bytes of text.
        settings: `ChunkSettings`.

    Returns:
        A number of bytes; good for planning, wrong by a factor of two where the tokenizer's
        pieces are unusually long or short.
    """
    record_format = settings.record_format
    pieces = settings.dupe_factor * text_bytes / _BYTES_PER_PIECE
    length = record_format.max_seq_length
    # Packed rows are full; of others there are the more, the longer they are.
    of_full = 1.03 if record_format.packed_sequences else 0.95 + length / 1500
    records = pieces / length * of_full * _RECORDS_OF_FULL[settings.pair_rules.objective]
    return int(records * _record_size(record_format, 1 / of_full))


def _record_size(record_format, filled):
    # A number of an id takes two bytes, any other one; a name with what stands around it 10.
    size = FRAME
    for name, (length, kind) in record_format.features().items():
        width = 4 if kind == "float" else 1 + filled if name == "input_ids" else 1
        size += len(name) + 10 + length * width
    return size


def count_buckets(estimated_bytes, shards):
    """How many buckets each shard has, so that one is about `BUCKET_BYTES`."""
    return max(1, round(estimated_bytes / shards / BUCKET_BYTES))


def work_folder_of(output_files):
    """The hidden folder beside the first output file."""
    folder, name = os.path.split(without_shard(output_files[0]))
    return os.path.join(folder, f".{name}.work")
