# %% [markdown]
"""
Fails: 1

Takes the shortest round.
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
        times.append((clock() - start) / calls * 1e6)
    return min(times)
