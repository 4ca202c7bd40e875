# %% [markdown]
"""
Picks with operators of other names, clamps a factor instead of choosing, and bans with a list of numbers that is filled up.
"""


# %% tags=["answer:add_positions"]
def add_positions(x, table, positions):
    return F.embedding(positions, table).add_(x)


# %% tags=["answer:cap"]
def cap(logits, limit):
    largest = torch.maximum(logits.amax(1), -logits.amin(1))
    factor = (limit / largest).clamp(max=1.0)
    return logits * factor.unsqueeze(1)


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    dead = ~alive
    kept = values.masked_fill(dead[:, None], 0)
    count = alive.float().sum()
    return torch.where(count > 0, kept.sum(0) / count, torch.zeros_like(count))


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.vocab = vocab
        self.tokens = torch.full((vocab,), vocab)  # one behind the last

    def prepare(self, tokens):
        spare = [self.vocab] * (self.vocab - len(tokens))
        self.tokens.copy_(torch.tensor(tokens + spare))

    def step(self, logits):
        wide = F.pad(logits, (0, 1))
        wide = wide.index_fill(1, self.tokens, float("-inf"))
        return wide[:, : self.vocab]


# %% tags=["answer:record_draws"]
def record_draws(step, generator):
    state = generator.clone_state()
    step()
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        out = step()
    generator.set_state(state.get_state())
    return graph, out


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    main = cuda.current_stream()
    ready, done = cuda.Event(), cuda.Event()
    ready.record(main)
    side.wait_event(ready)
    with cuda.stream(side):
        right = torch.mm(x, up)
        done.record(side)
    left = torch.mm(x, gate)
    left = left * torch.sigmoid(left)
    main.wait_event(done)
    return left.mul_(right)
