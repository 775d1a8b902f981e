#!/bin/bash
# Usage: installed_tree.sh BUILD find_package|hints|pkg-config|cc|programs|examples|archive|wheel
# Installs BUILD, moves the installed tree elsewhere, and builds and runs programs against it; or runs its own.
set -euo pipefail
shopt -s nullglob
build=$1
way=$2
consumer=$(dirname "$(realpath "$0")")/consumer
examples=$(realpath "$consumer/../../../examples")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
prefix=$work/moved
mv "$work/first" "$prefix"
unset XSCHED_SCHEDULER XSCHED_POLICY LD_PRELOAD OPENCL_LAYERS

# The libraries' folder, lib or lib/<architecture>.
preempt=$(find "$prefix" -name libpreempt.so)
libdir=${preempt%/*}

# Those that were built, and for which there is a program.
platforms=()
for source in "$consumer"/*_program.c; do
  platform=$(basename "$source" _program.c)
  [[ ! -e $libdir/libhal$platform.so ]] || platforms+=("$platform")
done

build_with_cmake() {
  cmake -S "$consumer" -B "$work/build" -DCMAKE_BUILD_TYPE=Release "$@" >/dev/null
  cmake --build "$work/build" >/dev/null
  for program in "$work"/build/*program; do
    "$program"
  done
}

# build_with_cc SOURCE flags…
build_with_cc() {
  cc -std=c11 -Wall -Wextra -Werror "$consumer/$1" -o "$work/program" "${@:2}"
  LD_LIBRARY_PATH=$libdir "$work/program"
}

case $way in
  find_package)
    build_with_cmake -DCMAKE_PREFIX_PATH="$prefix"
    ;;
  hints)
    build_with_cmake -DXSCHED_HINTS="$libdir/cmake"
    ;;
  pkg-config)
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    # shellcheck disable=SC2046  # flags are words
    build_with_cc program.c $(pkg-config --cflags --libs xsched-soft)
    for platform in "${platforms[@]}"; do
      # shellcheck disable=SC2046
      build_with_cc "${platform}_program.c" $(pkg-config --cflags --libs "xsched-$platform")
    done
    ;;
  cc)
    build_with_cc program.c -I"$prefix/include" -L"$libdir" -lhalsoft -lpreempt
    ;;
  programs)
    for program in xserver xsched xcli; do
      "$prefix/bin/$program" --version
    done
    for platform in "${platforms[@]}"; do
      [[ -e $libdir/libshim$platform.so && -e $prefix/include/xsched/$platform/hal.h ]]
    done
    # The Python package finds the libraries beside the program.
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$prefix/share/xsched/python PATH=$prefix/bin:$PATH python3 -c '
import sys, xsched
assert xsched.__file__.startswith(sys.argv[1]), xsched.__file__
print(xsched.library("preempt")._name)' "$prefix" | grep "^$libdir/"
    # Nothing of what pip and Python leave in the source tree.
    [[ $(LC_ALL=C ls -m "$prefix/share/xsched/python") == "README.md, pyproject.toml, xsched" ]]
    "$prefix/bin/xsched" plan --list | grep "^4\.13 "
    # Each platform's shim is found beside the program, not where it was built or first installed.
    LD_LIBRARY_PATH=$build/standin "$prefix/bin/xsched" doctor >"$work/doctor" || true
    for shim in "$libdir"/libshim*.so; do
      grep -F "$shim" "$work/doctor"
    done
    if [[ -e $build/standin/libcuda.so.1 ]]; then
      grep "CUDA .*: preemption levels 1 and 2; not 3" "$work/doctor"
    fi
    for unit in "$prefix"/lib/systemd/*/xserver.service; do
      grep "^ExecStart=$work/first/bin/xserver " "$unit"
    done
    if [[ -x $prefix/bin/xserver-http ]]; then
      grep "^ExecStart=$work/first/bin/xserver-http " "$prefix/lib/systemd/system/xserver-http.service"
    fi
    ;;
  examples)
    # Where there are CUDA's headers, over the stand-in driver.
    cuda=()
    if [[ -e $build/standin/libcuda.so ]]; then
      cuda=("-DCUDA_DRIVER=$build/standin/libcuda.so")
    fi
    cmake -S "$examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror -DTASK_MIB=1" \
      -DCUDA_HEADERS="${CUDA_HEADERS:-}" "${cuda[@]}" >/dev/null
    cmake --build "$work/build" >/dev/null
    "$work/build/local"
    if [[ -e $build/standin/libcuda.so ]]; then
      "$work/build/explicit"
      "$work/build/hints" | grep "^unscheduled: "
      LD_LIBRARY_PATH=$build/standin "$prefix/bin/xsched" run --scheduler LCL -- "$work/build/hints" | grep "^scheduled: "
    fi
    # Over AMD's own runtime and the software agent, where both are there.
    if [[ -x $work/build/explicit_hip && -e $build/standin-hsa/libhsa-runtime64.so.1 ]]; then
      LD_LIBRARY_PATH=$build/standin-hsa "$work/build/explicit_hip" 1
    fi
    # The common ones: over the stand-in driver, AMD's runtime and the software agent, and OpenCL on the CPU.
    declare -A drivers=([cuda]=$build/standin [hip]=$build/standin-hsa [opencl]=)
    ran=0
    for platform in "${!drivers[@]}"; do
      [[ -x $work/build/manual_$platform ]] || continue
      [[ -z ${drivers[$platform]} || -d ${drivers[$platform]} ]] || continue
      export LD_LIBRARY_PATH=${drivers[$platform]} POCL_CACHE_DIR=$work/pocl
      "$work/build/submission_$platform" | grep "^resumed: 50 commands"
      "$work/build/transparent_$platform" 3 | grep "^3 tasks"
      "$prefix/bin/xsched" run --scheduler LCL --policy UP -u 75 -- "$work/build/transparent_$platform" 3 | grep "^3 tasks"
      "$prefix/bin/xsched" run --scheduler APP -- "$work/build/in_process_$platform" | grep "^priority 1: 20 tasks"
      "$prefix/bin/xsched" run --scheduler APP -- "$work/build/manual_$platform" | grep ", 0 while it was suspended"
      unset LD_LIBRARY_PATH
      ran=$((ran + 1))
    done
    # Each platform that is installed has its examples, where its headers are.
    ((ran != 0)) || [[ ! -e $libdir/libhalopencl.so ]]
    for script in "$examples"/*/*.py; do
      python3 -B -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$script"
    done
    ;;
  archive)
    "$(dirname "$0")/../../scripts/archive.sh" "$build" "$work/archive.tar.xz"
    "$(dirname "$0")/sbom_test.py" "$work/archive.tar.xz"
    mkdir "$work/unpacked"
    tar -C "$work/unpacked" -xf "$work/archive.tar.xz"
    root=$(echo "$work"/unpacked/xsched-*)
    "$root/bin/xserver" --version
    "$root/bin/xsched" plan --list | grep "^4\.13 "
    "$root/bin/xsched" simulate --seconds 1 --policy HPF priority
    ;;
  wheel)
    file=$("$(dirname "$0")/../../scripts/wheel.sh" "$build" "$work")
    "$(dirname "$0")/sbom_test.py" "$file"
    /usr/bin/python3 -m venv "$work/venv"
    "$work/venv/bin/pip" --disable-pip-version-check install --quiet --no-index "$file"
    # Nothing of the build, of the source, and of what is installed on this machine, is used.
    unset XSCHED_LIBRARY_DIR PYTHONPATH
    cd "$work"
    for program in xserver xsched xcli; do
      "$work/venv/bin/$program" --version
    done
    # The loads that come with it.
    "$work/venv/bin/xsched" simulate --seconds 1 --policy HPF priority
    # The same rights whoever builds it: as umask 022 gives.
    "$work/venv/bin/python" -c '
import sys, zipfile
modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in zipfile.ZipFile(sys.argv[1]).infolist()}
wrong = {name: oct(mode) for name, mode in modes.items() if mode not in (0o644, 0o664, 0o755)}
assert not wrong, wrong' "$file"
    # The package's own modules, and none that pip has left in the source tree.
    "$work/venv/bin/python" -c '
import pathlib, sys, zipfile
brought = {name for name in zipfile.ZipFile(sys.argv[1]).namelist() if name.startswith("xsched/") and not name.startswith("xsched/_installed/")}
package = pathlib.Path(sys.argv[2])
expected = {str(path.relative_to(package)) for path in package.glob("xsched/**/*") if path.is_file() and path.suffix != ".pyc"}
assert brought == expected, brought ^ expected' "$file" "$examples/../python"
    "$work/venv/bin/python" -c '
import sys, xsched
from xsched.programs import INSTALLED, find
assert str(INSTALLED).startswith(sys.argv[1]), INSTALLED
assert xsched.library("preempt")._name == str(INSTALLED / "lib" / "libpreempt.so.2")
assert find("xsched") == str(INSTALLED / "bin" / "xsched")
try:
    xsched.queues()
except xsched.ServerError as error:
    assert error.result == xsched.Result.ERROR_NOT_FOUND, error' "$work/venv"
    installed=$(dirname "$(dirname "$(realpath "$("$work/venv/bin/python" -c 'from xsched.programs import find; print(find("xsched"))')")")")
    LD_LIBRARY_PATH=$build/standin "$work/venv/bin/python" -m xsched.doctor >"$work/doctor" || true
    for shim in "$installed"/lib/libshim*.so; do
      grep -F "$shim" "$work/doctor"
    done
    # The package's tests, as far as this build has what they need.
    driver=$build/standin/libcuda.so.1
    runtime=$build/tests/fake_hip_a/libamdhip64.so
    declare -A needs=([test_cuda]=$driver [test_former]=$driver [test_server]=$driver [test_hip]=$runtime [test_opencl]=$libdir/libhalopencl.so)
    for file in "$examples"/../python/tests/test_*.py; do
      module=$(basename "$file" .py)
      [[ -e ${needs[$module]:-/} ]] || continue
      echo "$module"
      XSCHED_TEST_CUDA=$driver XSCHED_TEST_HIP_A=$runtime XSCHED_TEST_HIP_B=$build/tests/fake_hip_b/libamdhip64.so.6 \
        XSCHED_TEST_PROGRAM=$installed/bin/xsched POCL_CACHE_DIR=$work/pocl POCL_DEVICES=pthread \
        "$work/venv/bin/python" -B "$consumer/../package_tests.py" "$(dirname "$file")" "$module"
    done
    if command -v mypy >/dev/null; then
      mypy --strict --python-executable "$work/venv/bin/python" --cache-dir "$work/mypy" "$examples/../python/tests/typed_program.py"
    fi
    # Installed from its source, the commands are those of the installed programs, also where the package's own come first.
    /usr/bin/python3 -m venv --system-site-packages "$work/source"
    "$work/source/bin/pip" --disable-pip-version-check install --quiet --no-index --no-build-isolation "$prefix/share/xsched/python"
    PATH=$work/source/bin:$prefix/bin:$PATH xsched --version
    if PATH=$work/source/bin:/usr/bin:/bin xsched --version; then
      echo "there is no program to find" >&2
      exit 1
    fi
    # A program under its shim.
    if [[ -x $build/bin/opencl_client && -e $libdir/libshimopencl.so ]]; then
      POCL_CACHE_DIR=$work/pocl POCL_DEVICES=pthread "$work/venv/bin/xsched" run --scheduler LCL -- "$build/bin/opencl_client" threads
    fi
    ;;
  *)
    echo "unknown way: $way" >&2
    exit 2
    ;;
esac

# No text file of it but the units (binaries may carry debug information) may name where it was built or first installed.
if grep -rIlE --exclude='*.service' "$work/first|$(realpath "$build")" "$prefix"; then
  echo "these files name the place of the build" >&2
  exit 1
fi
