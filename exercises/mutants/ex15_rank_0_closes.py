# %% [markdown]
"""
Fails: 3

Lets rank 0 close for all.
"""


# %% tags=["answer:shut_down"]
def shut_down(rank, graphs):
    for graph in graphs.values():
        graph.destroy()
    if rank.number == 0:
        rank.close()
