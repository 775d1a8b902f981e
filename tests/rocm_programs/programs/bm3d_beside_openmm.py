# /// script
# requires-python = ">=3.12"
# dependencies = ["vapoursynth==77", "vapoursynth-bm3dhip==2.16", "openmm==8.6.1", "openmm-hip-7==8.6.1", "numpy==2.3.5"]
# [tool.xsched]
# gpus = ["gfx1100"]
# ///
"""Two runtime instances in one process: VapourSynth's plugin BM3D brings its own, HIP 7.0; OpenMM uses 7.2. BM3D launches graphs."""
import concurrent.futures
import hashlib
import pathlib

import vapoursynth

from openmm_argon import simulate


def instances():
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[-1] for line in maps if "libamdhip64" in line})


def denoise():
    core = vapoursynth.core
    clip = core.std.BlankClip(width=320, height=240, format=vapoursynth.GRAYS, length=60, color=0.5)
    frames = core.bm3dhip.BM3D(clip, sigma=3.0).frames(prefetch=4)
    return hashlib.sha256(b"".join(bytes(frame[0]) for frame in frames)).hexdigest()


with concurrent.futures.ThreadPoolExecutor() as others:
    denoised = others.submit(denoise)
    print("OpenMM", simulate(500), "BM3D", denoised.result(), "runtime instances", instances())
