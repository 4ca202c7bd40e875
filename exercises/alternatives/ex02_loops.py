# %% [markdown]
"""
Loops and nothing else; the step's results are paired with the requests.
"""


# %% tags=["answer:captured_size"]
def captured_size(size, sizes):
    best = None
    for recorded in sizes:
        if recorded >= size and (best is None or recorded < best):
            best = recorded
    return best


# %% tags=["answer:pad_batch"]
def pad_batch(reqs, sizes, dummy):
    rows = reqs.copy()
    while len(rows) < (captured_size(len(reqs), sizes) or 0):
        rows.append(dummy)
    return rows


# %% tags=["answer:run_padded"]
def run_padded(step, reqs, sizes, dummy):
    results = step(pad_batch(reqs, sizes, dummy))
    return [result for _, result in zip(reqs, results)]
