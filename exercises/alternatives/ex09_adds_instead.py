# %% [markdown]
"""
Adds a penalty instead of filling, adds up row by row, and records on a stream of its own.
"""


# %% tags=["answer:add_positions"]
def add_positions(x, table, positions):
    out = x.clone()
    out += torch.index_select(table, 0, positions)
    return out


# %% tags=["answer:cap"]
def cap(logits, limit):
    largest = torch.linalg.vector_norm(logits, float("inf"), 1, keepdim=True)
    return (
        logits * limit / torch.maximum(largest, torch.full_like(largest, limit))
    )


# %% tags=["answer:mean_of_alive"]
def mean_of_alive(values, alive):
    total = torch.zeros(values.shape[1])
    for row in range(values.shape[0]):  # a shape is known to the host
        total = total + torch.where(alive[row], values[row], 0.0)
    return total / torch.clamp(alive.sum(), 1)


# %% tags=["answer:Ban"]
class Ban:
    def __init__(self, vocab):
        self.penalty = torch.zeros(1, vocab)

    def prepare(self, tokens):
        self.penalty.zero_()
        for token in tokens:
            self.penalty[0, token].fill_(-torch.inf)

    def step(self, logits):
        return logits + self.penalty


# %% tags=["answer:record_draws"]
def record_draws(step, generator):
    before = generator.get_state()
    side = cuda.Stream()
    with cuda.stream(side):
        step()
    cuda.current_stream().wait_stream(side)
    generator.set_state(before)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph, stream=side):
        out = step()
    return graph, out


# %% tags=["answer:gated"]
def gated(x, gate, up, side):
    current = cuda.current_stream()
    left = F.silu(x @ gate)
    side.wait_stream(current)
    with cuda.stream(side):
        right = x @ up
    current.wait_stream(side)
    return right * left
