#!/usr/bin/env python3
"""Writes what the kernel's driver says of a machine with GPUs of the type MI308X: the files of /sys that AMD's runtime reads.

  machine.py FOLDER [--gpus N]        FOLDER gets the tree as of "/"

Names and order of the properties: the kernel's drivers/gpu/drm/amd/amdkfd/kfd_topology.c. Values: AMD's data sheet of the
MI308X (80 compute units in 4 dies, 192 GB, 64 KB of LDS, waves of 64) where it says them; the rest is marked "assumed".
"""
import argparse
import pathlib

TOPOLOGY = "sys/devices/virtual/kfd/kfd/topology"
FIRST_GPU_ID = 0x1000
FIRST_BUS = 5
FIRST_MINOR = 128

XCCS = 4
CUS_OF_XCC = 20
SIMDS_OF_CU = 4
HBM = 192 << 30
HOST_MEMORY = 64 << 30

# The room for saved waves of a queue, for each die: kfd_queue.c, kfd_queue_ctx_save_restore_size.
PAGE = 4096
WAVES_OF_XCC = CUS_OF_XCC * 40
CONTROL_STACK = -(-(WAVES_OF_XCC * 8 + 8 + 40) // PAGE) * PAGE
REGISTERS_AND_LDS_OF_CU = 0x80000 + 0x4000 + 0x10000 + 0x1000
CWSR = CONTROL_STACK + -(-(CUS_OF_XCC * REGISTERS_AND_LDS_OF_CU) // PAGE) * PAGE

# Bits of the capability: kfd_crat.h, HSA_CAP_*.
QUEUE_SIZE_POWER_OF_TWO = 1 << 3
WATCH_POINTS = 1 << 7 | 2 << 8
DOORBELLS_OF_64_BITS = 2 << 12
DEBUGGER = 1 << 15 | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 29
SRAM_ECC = 1 << 26
SVM = 1 << 27

PCIE, XGMI = 2, 11


def properties(**values):
    return "".join(f"{name} {value}\n" for name, value in values.items())


def cpu(gpus):
    return properties(cpu_cores_count=2, simd_count=0, mem_banks_count=1, caches_count=0, io_links_count=gpus, p2p_links_count=0,
                      cpu_core_id_base=0, simd_id_base=0)


def gpu(index, gpus):
    return properties(
        cpu_cores_count=0, simd_count=XCCS * CUS_OF_XCC * SIMDS_OF_CU, mem_banks_count=1, caches_count=3, io_links_count=gpus,
        p2p_links_count=0, cpu_core_id_base=0, simd_id_base=2147487744, max_waves_per_simd=8, lds_size_in_kb=64, gds_size_in_kb=0,
        num_gws=64, wave_front_size=64, array_count=16, simd_arrays_per_engine=1, cu_per_simd_array=10, simd_per_cu=SIMDS_OF_CU,
        max_slots_scratch_cu=32, gfx_target_version=90402, vendor_id=0x1002, device_id=0x74A2,
        location_id=(FIRST_BUS + index) << 8, domain=0, drm_render_minor=FIRST_MINOR + index,
        hive_id=1 if gpus > 1 else 0,                                               # assumed
        num_sdma_engines=2, num_sdma_xgmi_engines=6, num_sdma_queues_per_engine=8,  # assumed
        num_cp_queues=24, cwsr_size=CWSR, ctl_stack_size=CONTROL_STACK, eop_buffer_size=4096, max_engine_clk_fcompute=2100,
        local_mem_size=0, fw_version=170,                                           # assumed
        capability=QUEUE_SIZE_POWER_OF_TWO | WATCH_POINTS | DOORBELLS_OF_64_BITS | DEBUGGER | SRAM_ECC | SVM, debug_prop=0,
        sdma_fw_version=20, unique_id=0x308000 + index, num_xcc=XCCS,               # assumed
        max_engine_clk_ccompute=3000)


def memory(heap_type, size):
    return properties(heap_type=heap_type, size_in_bytes=size, flags=0, width=8192, mem_clk_max=1300)


# The driver lists each cache of each compute unit. One of each level is enough here.
def cache(level, size):
    return properties(processor_id_low=2147487744, level=level, size=size, cache_line_size=128, cache_lines_per_tag=1, association=16,
                      latency=0, type=9, sibling_map=1)


def link(kind, start, end):
    return properties(type=kind, version_major=0, version_minor=0, node_from=start, node_to=end, weight=20 if kind == PCIE else 15,
                      min_latency=0, max_latency=0, min_bandwidth=312, max_bandwidth=64000, recommended_transfer_size=0,
                      recommended_sdma_engine_id_mask=0, flags=1)


def nodes(gpus):
    """What is in each node's folder, by path."""
    # A heap that the host sees as a whole (1): the GPU's memory is within its BAR. The host's own is of type 0.
    yield {"gpu_id": "0\n", "properties": cpu(gpus), "mem_banks/0/properties": memory(0, HOST_MEMORY),
           **{f"io_links/{i}/properties": link(PCIE, 0, i + 1) for i in range(gpus)}}
    for index in range(gpus):
        others = [0] + [i + 1 for i in range(gpus) if i != index]
        yield {"gpu_id": f"{FIRST_GPU_ID + index}\n", "name": "ip discovery\n", "properties": gpu(index, gpus),
               "mem_banks/0/properties": memory(1, HBM),
               **{f"caches/{i}/properties": cache(i + 1, size) for i, size in enumerate((32, 4096, 256 << 10))},
               **{f"io_links/{i}/properties": link(XGMI if other else PCIE, index + 1, other) for i, other in enumerate(others)}}


def files(gpus):
    yield f"{TOPOLOGY}/generation_id", "1\n"
    yield f"{TOPOLOGY}/system_properties", properties(platform_oem=0, platform_id=0, platform_rev=0)
    yield "sys/module/amdgpu/parameters/cwsr_enable", "1\n"
    for number, node in enumerate(nodes(gpus)):
        for path, text in node.items():
            yield f"{TOPOLOGY}/nodes/{number}/{path}", text
    for index in range(gpus):
        yield f"sys/dev/char/226:{FIRST_MINOR + index}/device/drm/renderD{FIRST_MINOR + index}/dev", f"226:{FIRST_MINOR + index}\n"
        yield f"sys/dev/char/226:{FIRST_MINOR + index}/device/drm/card{index}/dev", f"226:{index}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=2)
    options = parser.parse_args()
    for path, text in files(options.gpus):
        file = options.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # Where the driver's class is looked for.
    link_of_class = options.folder / "sys/class/kfd/kfd"
    link_of_class.parent.mkdir(parents=True, exist_ok=True)
    if not link_of_class.is_symlink():
        link_of_class.symlink_to("../../devices/virtual/kfd/kfd")


if __name__ == "__main__":
    main()
