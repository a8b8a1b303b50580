"""Defines the same model and step in pure torch, with fused attention, torch.compile and AdamW.

It has less work in two respects: all rows are full, so attention needs no mask, and ALBERT is also
updated by AdamW. The last block computes all positions, as torch users usually write it.

Shapes: B rows, T tokens, P predictions, N heads, D head size, H hidden, E embedding, V vocabulary.
"""

from benchmarks.speed.contender_steps.shared import CLIP, DECAY, RATE, task_config, timed

EPSILON = 1e-12  # of layer norm


def torch_bert(task):
    """Prepares the training step for timing, on a GPU if torch sees one."""
    import torch

    config, batch = task_config(task)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")  # TF32, TensorFlow's default
    model = make_model(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    batch = {name: torch.tensor(array, device=device).long() for name, array in batch.items()}
    bfloat16 = task["precision"] == "bfloat16"

    def forward(batch):
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            return model(batch)

    compiled = forward if task["xla"] == "off" else torch.compile(forward)

    def step():
        loss = compiled(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return timed(step, lambda loss: loss.item())


def make_model(config):
    """Builds BERT or ALBERT with both heads as a torch module that returns the loss."""
    import torch
    from torch import nn
    from torch.nn import functional

    hidden, width, vocabulary = config.hidden_size, config.embedding_size, config.vocab_size
    rate = config.hidden_dropout_prob

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.projection = nn.Linear(hidden, 3 * hidden)
            self.attention_output = nn.Linear(hidden, hidden)
            self.attention_norm = nn.LayerNorm(hidden, eps=EPSILON)
            self.intermediate = nn.Linear(hidden, config.intermediate_size)
            self.output = nn.Linear(config.intermediate_size, hidden)
            self.output_norm = nn.LayerNorm(hidden, eps=EPSILON)

        def forward(self, x):  # [B, T, H] -> [B, T, H]
            rows, length, _ = x.shape
            heads = config.num_attention_heads
            split = self.projection(x).view(rows, length, 3, heads, hidden // heads)
            query, key, value = split.permute(2, 0, 3, 1, 4)  # [B, N, T, D] each
            dropped = config.attention_probs_dropout_prob
            context = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropped)
            context = context.transpose(1, 2).reshape(rows, length, hidden)  # [B, T, H]
            y = functional.dropout(self.attention_output(context), rate)
            x = self.attention_norm(x + y)
            y = self.output(functional.gelu(self.intermediate(x), approximate="tanh"))
            return self.output_norm(x + functional.dropout(y, rate))

    class Pretraining(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.types = nn.Embedding(config.type_vocab_size, width)
            self.positions = nn.Embedding(config.max_position_embeddings, width)
            self.norm = nn.LayerNorm(width, eps=EPSILON)
            self.widen = nn.Linear(width, hidden) if width != hidden else nn.Identity()
            self.blocks = nn.ModuleList(Block() for _ in range(config.num_blocks))
            self.pooler, self.sentence = nn.Linear(hidden, hidden), nn.Linear(hidden, 2)
            self.transform = nn.Linear(hidden, width)
            self.head_norm = nn.LayerNorm(width, eps=EPSILON)
            self.bias = nn.Parameter(torch.zeros(vocabulary))

        def forward(self, batch):
            ids = batch["input_ids"]
            places = torch.arange(ids.shape[1], device=ids.device)
            x = self.words(ids) + self.types(batch["segment_ids"]) + self.positions(places)
            x = self.widen(functional.dropout(self.norm(x), rate))  # [B, T, H]
            calls = config.num_block_calls
            for i in range(calls):
                x = self.blocks[i * len(self.blocks) // calls](x)
            rows = torch.arange(len(x), device=x.device)[:, None]
            at = x[rows, batch["masked_lm_positions"]]  # [B, P, H]
            at = functional.gelu(self.transform(at), approximate="tanh")
            at = self.head_norm(at)  # [B, P, E]
            logits = functional.linear(at, self.words.weight) + self.bias  # [B, P, V]
            pairs = self.sentence(torch.tanh(self.pooler(x[:, 0])))  # [B, 2]
            words = functional.cross_entropy(logits.flatten(0, 1), batch["masked_lm_ids"].flatten())
            return words + functional.cross_entropy(pairs, batch["next_sentence_labels"][:, 0])

    return Pretraining()
