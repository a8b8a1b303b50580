"""The same model and step in torch: scaled_dot_product_attention, torch.compile, fused AdamW.

It computes what the exported step does, with two differences that spare it work: all rows are full,
so that attention needs no mask, and ALBERT is updated by AdamW too. The last block computes all
positions, as torch users write it.

Shapes: B rows, T tokens, P predictions, N heads, D head size, H hidden, E embedding, V vocabulary.
"""

import time

import torch
from torch import nn
from torch.nn import functional

from benchmarks.gpu_step.runtime import read_description
from benchmarks.gpu_step.timing import numbers, random_batch, time_rounds

RATE, DECAY, CLIP = 1e-4, 0.01, 1.0
EPSILON = 1e-12  # of layer norm


class Block(nn.Module):
    """Attention and the feed-forward part, each with dropout, residual and layer norm."""

    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.attention_rate = config["attention_probs_dropout_prob"]
        self.rate = config["hidden_dropout_prob"]
        self.projection = nn.Linear(hidden, 3 * hidden)
        self.attention_output = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=EPSILON)
        self.intermediate = nn.Linear(hidden, inner)
        self.output = nn.Linear(inner, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=EPSILON)

    def forward(self, x):
        """[B, T, H] -> [B, T, H]."""
        rows, length, hidden = x.shape
        split = self.projection(x).view(rows, length, 3, self.heads, hidden // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)  # [B, N, T, D] each
        rate = self.attention_rate if self.training else 0.0
        context = functional.scaled_dot_product_attention(query, key, value, dropout_p=rate)
        context = context.transpose(1, 2).reshape(rows, length, hidden)  # [B, T, H]
        y = functional.dropout(self.attention_output(context), self.rate, self.training)
        x = self.attention_norm(x + y)
        y = self.output(functional.gelu(self.intermediate(x), approximate="tanh"))
        return self.output_norm(x + functional.dropout(y, self.rate, self.training))


class Pretraining(nn.Module):
    """BERT or ALBERT with both heads, returning the loss."""

    def __init__(self, config):
        super().__init__()
        hidden, vocabulary = config["hidden_size"], config["vocab_size"]
        width = config.get("embedding_size", hidden)
        self.rate = config["hidden_dropout_prob"]
        self.words = nn.Embedding(vocabulary, width)
        self.types = nn.Embedding(config["type_vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings"], width)
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.widen = nn.Linear(width, hidden) if width != hidden else nn.Identity()
        layers = config["num_hidden_layers"]
        groups = config.get("num_hidden_groups", layers)  # of ALBERT's shared blocks
        self.blocks = nn.ModuleList(Block(config) for _ in range(groups))
        self.order = [i * len(self.blocks) // layers for i in range(layers)]
        self.pooler = nn.Linear(hidden, hidden)
        self.sentence = nn.Linear(hidden, 2)
        self.transform = nn.Linear(hidden, width)
        self.head_norm = nn.LayerNorm(width, eps=EPSILON)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, batch):
        """The features of a batch, int64 tensors -> the loss."""
        ids = batch["input_ids"]
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.types(batch["segment_ids"]) + self.positions(places)
        x = self.widen(functional.dropout(self.norm(x), self.rate, self.training))  # [B, T, H]
        for index in self.order:
            x = self.blocks[index](x)
        masked = batch["masked_lm_positions"]
        at = x[torch.arange(len(x), device=x.device)[:, None], masked]  # [B, P, H]
        at = self.head_norm(functional.gelu(self.transform(at), approximate="tanh"))  # [B, P, E]
        logits = functional.linear(at, self.words.weight) + self.bias  # [B, P, V]
        pairs = self.sentence(torch.tanh(self.pooler(x[:, 0])))  # [B, 2]
        words = functional.cross_entropy(logits.flatten(0, 1), batch["masked_lm_ids"].flatten())
        return words + functional.cross_entropy(pairs, batch["next_sentence_labels"][:, 0])


def time_torch(folder, rounds):
    """Times the torch step of the size that a program's folder describes: a dict for `report`."""
    description = read_description(folder)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    torch.set_float32_matmul_precision("high")  # TF32, as XLA has it
    model = Pretraining(description["config"]).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    batch = {
        name: torch.tensor(value, device=device).long()
        for name, value in random_batch(description).items()
    }
    bfloat16 = description["precision"] == "bfloat16"

    def forward(batch):
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            return model(batch)

    compiled = torch.compile(forward)

    def step():
        loss = compiled(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    start = time.perf_counter()
    step()
    seconds = time_rounds(step, lambda loss: loss.item(), rounds)
    return {
        **numbers(description, seconds, torch.cuda.get_device_name() if cuda else "cpu"),
        "runtime": f"torch {torch.__version__}",
        "compile_seconds": time.perf_counter() - start - sum(seconds),
        "peak_bytes": torch.cuda.max_memory_allocated() if cuda else None,
    }
