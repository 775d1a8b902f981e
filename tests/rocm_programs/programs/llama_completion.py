# /// script
# [tool.xsched]
# runtime = "system"
# programs = ["llama-completion"]
# folders = ["bench/gpu"]
# ///
"""llama.cpp, as the distribution builds it with rocBLAS, continues a text with a model of random numbers."""
import os
import pathlib

from random_llama import Shape, write

path = pathlib.Path.home() / "random.gguf"
write(path, Shape(width=256, layers=2, heads=4, shared_heads=4, feed_forward=512, context=512, vocabulary=263))
# The process stays the same: its queues are watched.
os.execvp("llama-completion", ["llama-completion", "--model", str(path), "--prompt", "a b a b", "--predict", "32", "--temp", "0",
                               "--seed", "1", "--gpu-layers", "99", "--no-conversation"])
