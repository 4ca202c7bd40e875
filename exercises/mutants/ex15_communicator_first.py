# %% [markdown]
"""
Fails: 3

Closes the communicator, then destroys the graphs.
"""


# %% tags=["answer:shut_down"]
def shut_down(rank, graphs):
    rank.close()
    for graph in graphs.values():
        graph.destroy()
