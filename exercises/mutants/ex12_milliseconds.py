# %% [markdown]
"""
Fails: 1

Takes a thousand for a million.
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
        times.append((clock() - start) / calls * 1e3)
    return (sorted(times)[rounds // 2] + sorted(times)[(rounds - 1) // 2]) / 2
