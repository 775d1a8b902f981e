#!/usr/bin/env python3
"""Fetches AMD's own builds of the HIP runtime from PyPI, to test with.

  fetch-hip-runtime.py [--into FOLDER] [VERSION…]     7.0.0, 7.2.4, 7.14.0; by default all. FOLDER: build/hip
  fetch-hip-runtime.py [--into FOLDER] triton         Triton, as a program to test with: FOLDER/triton is a folder for PYTHONPATH

Distributions build the runtime without its dispatch table; AMD's builds have it. Some wheels carry them, renamed so that they do not
meet others in a process. Here they get the names back that they have in /opt/rocm: FOLDER/VERSION/libamdhip64.so.7 and so on.
The wheels' libhsa-runtime64 is beside them, in FOLDER/VERSION/rocr: most tests bring their own, the software agent. What is there
already stays; remove FOLDER/VERSION to have it fetched again.
Needs pip and patchelf.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# What is in a wheel does not depend on the Python that runs here, though its metadata asks for 3.12.
WHEELS = {
    "7.0.0": ("vapoursynth-dfttest2-hip==10", "c815213eaa10042f25c41141b67c0413f7049f1c711936c5826d3c99901c4927"),
    "7.2.4": ("vapoursynth-dfttest2-hip==10.3", "6a4864c740ca6bc3264d2fe7223a14d136df9be0a13682e345c7f4c6eeeca5b7"),
    "7.14.0": ("vapoursynth-dfttest2-hiprtc==11.1.0", "42599353ee4c708290405f7b8b20a944ef696e4a5ba34fedeec891fc2b9d5d93"),
}
TRITON = ("triton==3.9.0", "5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf")

# AMD's libraries. What else is in a wheel belongs to them alone, and keeps its name.
AMDS = {"amdhip64", "amd_comgr", "hipfft", "hiprtc", "rocfft", "rocprofiler-register"}
HSA = "hsa-runtime64"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def plain_name(file):
    """libamdhip64-e487b73a.so.7.2.70204 -> libamdhip64.so.7; None: it is not one of AMD's."""
    parts = re.fullmatch(r"lib([\w-]+)-[0-9a-f]{8}\.so\.(\d+)[\w.-]*", file)
    return f"lib{parts[1]}.so.{parts[2]}" if parts and parts[1] in AMDS | {HSA} else None


def download(requirement, sha256, folder):
    listed = folder / "requirements.txt"
    listed.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    print(f"fetching {requirement}", flush=True)
    run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--retries=1", "--timeout=20", "--no-deps",
        "--require-hashes",
        "--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64", "--dest", str(folder), "--requirement", str(listed))
    return next(folder.glob("*.whl"))


def extract_libraries(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = pathlib.PurePath(entry.filename)
            if path.parent.name.endswith(".libs") and not entry.is_dir():
                (folder / path.name).write_bytes(archive.read(entry))


def rename(library, names):
    """One change at a time: patchelf 0.14 spoils a library when it is asked for several."""
    for needed in run("patchelf", "--print-needed", str(library)).split():
        if needed in names:
            run("patchelf", "--replace-needed", needed, names[needed], str(library))
    name = names.get(library.name)
    if name is not None:
        run("patchelf", "--set-soname", name, str(library))
        run("patchelf", "--set-rpath", "$ORIGIN", str(library))
        library.rename(library.with_name(name))
        library.with_name(name.partition(".so.")[0] + ".so").symlink_to(name)


def make_runtime(version, work, made):
    extract_libraries(download(*WHEELS[version], work), made)
    names = {file.name: plain_name(file.name) for file in made.iterdir() if plain_name(file.name)}
    for library in sorted(made.iterdir()):
        rename(library, names)
    (made / "rocr").mkdir()
    for library in list(made.glob(f"lib{HSA}.so*")):
        library.rename(made / "rocr" / library.name)
    # An RPATH is also where the libraries that it needs look for theirs; not all of them have one.
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/..", str(made / "rocr" / f"lib{HSA}.so.1"))


def make_triton(work, made):
    with zipfile.ZipFile(download(*TRITON, work)) as archive:
        for entry in archive.infolist():
            path = pathlib.Path(archive.extract(entry, made))
            # Some are programs, which zipfile forgets.
            if mode := entry.external_attr >> 16:
                path.chmod(mode)


def make(what, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        work = pathlib.Path(work)
        made = work / "made"
        made.mkdir()
        if what == "triton":
            make_triton(work, made)
        else:
            make_runtime(what, work, made)
        # In one step, so that half of it is never found.
        made.rename(folder / what)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build" / "hip")
    parser.add_argument("versions", nargs="*", metavar="VERSION", choices=[*WHEELS, "triton", []])
    options = parser.parse_args()
    for what in options.versions or WHEELS:
        if (options.into / what).exists():
            continue
        try:
            make(what, options.into)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"fetch-hip-runtime: {what}: {error}")


if __name__ == "__main__":
    main()
