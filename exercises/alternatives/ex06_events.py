# %% [markdown]
"""
Orders the streams with events, and takes one pool handle for all graphs before the first.
"""


# %% tags=["answer:warm_up"]
def warm_up(step):
    side, ready, done = cuda.Stream(), cuda.Event(), cuda.Event()
    ready.record(cuda.current_stream())
    side.wait_event(ready)
    with cuda.stream(side):
        step()
        done.record(side)
    done.wait(cuda.current_stream())


# %% tags=["answer:record"]
def record(step, pool):
    made = cuda.CUDAGraph()
    context = cuda.graph(made, pool)
    with context:
        step()
    return made


# %% tags=["answer:capture_graphs"]
def capture_graphs(sizes, make_step):
    pool = cuda.graph_pool_handle()
    graphs = {}
    for size in reversed(sorted(sizes)):
        step = make_step(size)
        warm_up(step)
        graphs[size] = record(step, pool)
    return graphs
