"""The cache holds what was written where it was written, and free rows name the dummy's page."""

from __future__ import annotations

import torch

from onelaunch.engine.kvcache import KVCachePool, PageTable, pages_for


def test_a_slot_is_page_times_page_size_plus_offset() -> None:
    pool = KVCachePool(
        num_layers=2,
        num_pages=5,
        page_size=4,
        num_kv_heads=1,
        head_dim=3,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    k, v = torch.rand(2, 1, 3), torch.rand(2, 1, 3)
    pool.store(k, v, torch.tensor([9, 23]), layer_id=1)
    assert torch.equal(pool.k_cache[1, 2, 1], k[0])  # 9 = 2 * 4 + 1
    assert torch.equal(pool.v_cache[1, 5, 3], v[1])  # 23 = 5 * 4 + 3: the dummy's page
    assert pool.dummy_page == 5
    assert int((pool.k_cache != 0).sum()) == 6
    assert not pool.k_cache[0].any()


def test_pages_are_rounded_up() -> None:
    assert [pages_for(tokens, 16) for tokens in (0, 1, 16, 17, 32, 33)] == [0, 1, 1, 2, 2, 3]


def test_a_released_row_names_the_dummy_page_again() -> None:
    table = PageTable(max_running_req=2, max_pages=3, dummy_page=7, device=torch.device("cpu"))
    row = table.take_row()
    table.set_page(row, 0, 4)
    table.release_row(row)
    assert table.table.tolist() == [[7, 7, 7]] * 3
    assert table.dummy_row == 2
