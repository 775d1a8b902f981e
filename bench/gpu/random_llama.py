"""Writes a model for llama.cpp (GGUF) of random numbers. Needs the package gguf."""
import dataclasses

import gguf
import numpy

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # types of tokens
FIRST_TOKENS = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL, **{f"<0x{byte:02X}>": BYTE for byte in range(256)},
                **dict.fromkeys(("▁", "a", "b", "▁a"), NORMAL)}


@dataclasses.dataclass
class Shape:
    """1.1 thousand million weights by default."""
    width: int = 2048
    layers: int = 22
    heads: int = 32
    shared_heads: int = 4  # of keys and values
    feed_forward: int = 5632
    context: int = 2048
    vocabulary: int = 32000


def describe(model, shape):
    tokens = FIRST_TOKENS | {f"▁w{number}": NORMAL for number in range(len(FIRST_TOKENS), shape.vocabulary)}
    model.add_context_length(shape.context)
    model.add_embedding_length(shape.width)
    model.add_block_count(shape.layers)
    model.add_feed_forward_length(shape.feed_forward)
    model.add_head_count(shape.heads)
    model.add_head_count_kv(shape.shared_heads)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(shape.width // shape.heads)
    model.add_vocab_size(len(tokens))
    model.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    model.add_tokenizer_model("llama")
    model.add_token_list(list(tokens))
    model.add_token_scores([0.0] * len(tokens))
    model.add_token_types(list(tokens.values()))
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    model.add_unk_token_id(0)


def fill(model, shape):
    # Repeated, because a thousand million random numbers take long.
    block = (numpy.random.default_rng(0).normal(size=1 << 20) * 0.02).astype(numpy.float16)

    def tensor(name, *sizes, like=numpy.float16):
        model.add_tensor(f"{name}.weight", numpy.resize(block, sizes).astype(like, copy=False))

    shared = shape.width // shape.heads * shape.shared_heads
    tensor("token_embd", shape.vocabulary, shape.width)
    tensor("output", shape.vocabulary, shape.width)
    tensor("output_norm", shape.width, like=numpy.float32)
    for layer in range(shape.layers):
        tensor(f"blk.{layer}.attn_q", shape.width, shape.width)
        tensor(f"blk.{layer}.attn_k", shared, shape.width)
        tensor(f"blk.{layer}.attn_v", shared, shape.width)
        tensor(f"blk.{layer}.attn_output", shape.width, shape.width)
        tensor(f"blk.{layer}.attn_norm", shape.width, like=numpy.float32)
        tensor(f"blk.{layer}.ffn_norm", shape.width, like=numpy.float32)
        tensor(f"blk.{layer}.ffn_gate", shape.feed_forward, shape.width)
        tensor(f"blk.{layer}.ffn_up", shape.feed_forward, shape.width)
        tensor(f"blk.{layer}.ffn_down", shape.width, shape.feed_forward)


def write(path, shape=Shape()):
    model = gguf.GGUFWriter(path, "llama")
    describe(model, shape)
    fill(model, shape)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
