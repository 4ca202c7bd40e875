# %% [markdown]
"""
Makes the result before the replay, and copies the rows into it; tries the graphs one after the other.
"""


# %% tags=["answer:can_use_graph"]
def can_use_graph(runner, batch):
    if batch.is_prefill:
        return False
    return any(batch.size <= size for size in runner.graph_bs_list)


# %% tags=["answer:replay"]
import torch


def replay(runner, batch):
    runner.context.attn_backend.prepare_for_replay(batch)
    runner.buffer.copy_from(batch)
    logits = runner.buffer.logits
    out = torch.empty(batch.size, logits.shape[1], dtype=logits.dtype)
    runner.graph_map[batch.padded_size].replay()
    return out.copy_(logits[: batch.size])


# %% tags=["answer:run_step"]
def run_step(runner, batch, eager):
    if not can_use_graph(runner, batch):
        runner.note_eager(batch)
        return eager(batch)
    return replay(runner, batch)
