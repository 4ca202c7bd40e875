"""The engine: requests become batches, batches become logits, logits become tokens."""
