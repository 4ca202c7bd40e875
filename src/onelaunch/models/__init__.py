"""The models that the engine runs: Llama and Qwen3 families, and how their weights and tokens get here."""
