# %% [markdown]
"""
Keeps one side stream for everything, lets the host wait, and begins and ends the capture by hand.
"""

# %% tags=["answer:warm_up"]
side = cuda.Stream()


def warm_up(step):
    cuda.synchronize()
    before = cuda.current_stream()
    cuda.set_stream(side)
    try:
        step()
    finally:
        cuda.set_stream(before)
    side.synchronize()


# %% tags=["answer:record"]
def record(step, pool):
    graph = cuda.CUDAGraph()
    with cuda.stream(side):
        graph.capture_begin(pool=pool)
        step()
        graph.capture_end()
    return graph


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    left, graphs = set(sizes), {}
    while left:
        size = max(left)
        left.remove(size)
        step = make_step(size)
        warm_up(step)
        first = next(iter(graphs.values()), None)
        graphs[size] = record(step, first.pool() if first else None)
    return graphs
