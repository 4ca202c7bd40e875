# %% [markdown]
"""
Fails: 1

Forgets that a round is several calls.
"""


# %% tags=["answer:median_us"]
def median_us(call, clock, warmup, rounds, calls):
    for _ in range(warmup):
        call()
    times = []
    for _ in range(rounds):
        start = clock()
        for _ in range(calls):
            call()
        times.append((clock() - start) * 1e6)
    return (sorted(times)[rounds // 2] + sorted(times)[(rounds - 1) // 2]) / 2
