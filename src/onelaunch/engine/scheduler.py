"""The scheduler: who runs in the next step. Requests join and leave while others decode.

A request is admitted, first come first served, once a row of the page table is free and the cache can promise all the
pages it may ever need. So no running request can starve for memory and none has to be thrown out again; the pages
themselves are handed out only as it grows, and what an early end leaves unused goes back at once.
"""

from __future__ import annotations

from collections import deque

from onelaunch.engine.core import Batch, FinishReason, Req
from onelaunch.engine.kvcache import PageAllocator, PageTable, pages_for


class Scheduler:
    """Holds every request from submission to its end.

    max_prefill_tokens: prompt tokens that one prefill computes at most (a longer prompt goes alone).
    """

    def __init__(
        self, allocator: PageAllocator, page_table: PageTable, page_size: int, max_prefill_tokens: int = 4096
    ) -> None:
        self.allocator, self.page_table, self.page_size = allocator, page_table, page_size
        self.max_prefill_tokens = max_prefill_tokens
        self.waiting: deque[Req] = deque()
        self.running: list[Req] = []

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def max_pages(self, req: Req) -> int:
        """Pages that ``req`` needs at most. Its last token ends it and is never cached."""
        return pages_for(req.max_device_len - 1, self.page_size)

    def add(self, req: Req) -> None:
        self.waiting.append(req)

    def next_batch(self) -> Batch | None:
        """The next step: a prefill of all requests that can join now, else a decode of all that run, else None.

        Prompts go first: a request that has joined decodes with the others from the next step on.
        """
        joining = self._admit()
        if joining:
            batch = Batch(joining, "prefill")
        elif self.running:
            batch = Batch(list(self.running), "decode")
        else:
            return None
        for req in batch.reqs:
            self._grow(req)
        return batch

    def finish(self, req: Req, reason: FinishReason) -> None:
        """End a request, running or waiting, and take back everything it holds."""
        req.finish_reason = reason
        if req.table_idx < 0:
            self.waiting.remove(req)
            return
        self.running.remove(req)
        self.allocator.free(req.pages, reserved=self.max_pages(req) - len(req.pages))
        self.page_table.release_row(req.table_idx)
        req.pages, req.table_idx = [], -1

    def _admit(self) -> list[Req]:
        joining: list[Req] = []
        budget = self.max_prefill_tokens
        while self.waiting and self.page_table.num_free_rows:
            req = self.waiting[0]
            if joining and req.extend_len > budget:
                break
            if not self.allocator.reserve(self.max_pages(req)):
                break
            self.waiting.popleft()
            req.table_idx = self.page_table.take_row()
            budget -= req.extend_len
            joining.append(req)
        self.running += joining
        return joining

    def _grow(self, req: Req) -> None:
        """Give ``req`` pages for all the tokens it has after the next step."""
        while len(req.pages) * self.page_size < req.device_len:
            page = self.allocator.allocate()
            self.page_table.set_page(req.table_idx, len(req.pages), page)
            req.pages.append(page)
