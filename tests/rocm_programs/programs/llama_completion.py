# /// script
# [tool.xsched]
# runtime = "system"
# programs = ["llama-completion"]
# ///
"""llama.cpp, as the distribution builds it with rocBLAS, continues a text with a model of random numbers."""
import os
import pathlib

import gguf
import numpy

WIDTH, LAYERS, HEADS, FEED_FORWARD = 256, 2, 4, 512
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a"]
UNKNOWN, CONTROL, BYTE, NORMAL = 2, 3, 6, 1


def describe(model):
    model.add_context_length(512)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(len(TOKENS))
    model.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    model.add_tokenizer_model("llama")
    model.add_token_list(TOKENS)
    model.add_token_scores([0.0] * len(TOKENS))
    model.add_token_types([UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * 4])
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    model.add_unk_token_id(0)


def fill(model):
    generator = numpy.random.default_rng(0)

    def tensor(name, *shape, type=numpy.float16):
        model.add_tensor(f"{name}.weight", (generator.normal(size=shape) * 0.05).astype(type))

    tensor("token_embd", len(TOKENS), WIDTH)
    tensor("output", len(TOKENS), WIDTH)
    tensor("output_norm", WIDTH, type=numpy.float32)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}", WIDTH, WIDTH)
        for name in ("attn_norm", "ffn_norm"):
            tensor(f"blk.{layer}.{name}", WIDTH, type=numpy.float32)
        for name in ("ffn_gate", "ffn_up"):
            tensor(f"blk.{layer}.{name}", FEED_FORWARD, WIDTH)
        tensor(f"blk.{layer}.ffn_down", WIDTH, FEED_FORWARD)


def write(path):
    model = gguf.GGUFWriter(path, "llama")
    describe(model)
    fill(model)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


path = pathlib.Path.home() / "random.gguf"
write(path)
# The process stays the same: its queues are watched.
os.execvp("llama-completion", ["llama-completion", "--model", str(path), "--prompt", "a b a b", "--predict", "32", "--temp", "0",
                               "--seed", "1", "--gpu-layers", "99", "--no-conversation"])
