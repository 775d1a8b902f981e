#!/usr/bin/env python3
"""Runs all checks and measurements on a machine with an NVIDIA GPU. Each figure has its native counterpart from the same run.

  run.py --bin FOLDER --out FOLDER [--only STAGE,…] [--seconds S]

Writes results.json (all rows and samples, each row at once), table.md, page.html (the table, and how often each latency occurred),
log.txt (the output of the programs and the server) and doctor.txt into the output folder. If a step fails, that is recorded, and the next one follows. figures.py joins several runs.
"""
import argparse
import os
import pathlib
import platform
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import class_stages  # noqa: E402
import correct_stage  # noqa: E402
import figures  # noqa: E402
import gang_stage  # noqa: E402
import kernel_stages  # noqa: E402
import liveness_stage  # noqa: E402
import memory_stage  # noqa: E402
import policy_stage  # noqa: E402
import serving_stage  # noqa: E402
import torch_stages  # noqa: E402
from keep_awake import awake_cores  # noqa: E402
from session import Session  # noqa: E402

STAGES = {
    "correct": correct_stage.correct,
    "python": correct_stage.python,
    "sanitizer": correct_stage.sanitizer,
    "alone": kernel_stages.alone,
    "pair": kernel_stages.pair,
    "mps": kernel_stages.mps,
    "streams": kernel_stages.streams,
    "three": kernel_stages.three,
    "share": kernel_stages.share,
    "gates": kernel_stages.gates,
    "suspend": kernel_stages.suspend,
    **class_stages.STAGES,
    **gang_stage.STAGES,
    **liveness_stage.STAGES,
    "memory": memory_stage.memory,
    **policy_stage.STAGES,
    **serving_stage.STAGES,
    "torch_alone": torch_stages.torch_alone,
    "torch_operator": torch_stages.torch_operator,
    "torch_pair": torch_stages.torch_pair,
    "torch_threads": torch_stages.torch_threads,
    "bert": torch_stages.bert_six,
}
# Names for several stages.
GROUPS = {"liveness": list(liveness_stage.STAGES)}


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return (done.stdout + done.stderr).strip()


def machine():
    gpus = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    versions = output_of(sys.executable, "-c", "import torch; print(torch.__version__)").splitlines()
    return {"GPU": gpus[0] if gpus else "none", "GPUs": len(gpus), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "Python": platform.python_version(), "PyTorch": versions[-1] if versions else ""}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with xsched, xserver and gpu_task")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", help=f"stages, with commas: {', '.join([*STAGES, *GROUPS])}")
    parser.add_argument("--seconds", type=float, default=8, help="of one measurement (default 8)")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(STAGES)
    names = [stage for name in chosen for stage in GROUPS.get(name, [name])]
    if unknown := [name for name in names if name not in STAGES]:
        parser.error(f"no such stage: {', '.join(unknown)}")

    begin = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    report = figures.Report(options.out / "results.json", machine())
    print(report.machine, flush=True)
    (options.out / "doctor.txt").write_text(output_of(str(options.bin / "xsched"), "doctor") + "\n")
    with open(options.out / "log.txt", "w", encoding="utf-8", buffering=1) as log, awake_cores():
        session = Session(options.bin.resolve(), options.seconds, report, log)
        kernel_stages.calibrate(session)
        for name in names:
            stage_begin = time.monotonic()
            STAGES[name](session)
            print(f"=== {name}: {time.monotonic() - stage_begin:.0f} s", flush=True)
            results = [{"machine": report.machine, "rows": report.rows}]
            (options.out / "table.md").write_text(figures.page(results))
            (options.out / "page.html").write_text(figures.html_page(results), encoding="utf-8")
    print(f"all: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
