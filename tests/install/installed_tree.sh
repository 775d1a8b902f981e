#!/bin/bash
# Usage: installed_tree.sh BUILD find_package|hints|pkg-config|cc|programs
# Installs BUILD, moves the installed tree elsewhere, and builds and runs programs against it; or runs its own.
set -euo pipefail
shopt -s nullglob
build=$1
way=$2
consumer=$(dirname "$(realpath "$0")")/consumer

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
prefix=$work/moved
mv "$work/first" "$prefix"
unset XSCHED_SCHEDULER XSCHED_POLICY LD_PRELOAD OPENCL_LAYERS

# The libraries' folder, lib or lib/<architecture>.
preempt=$(find "$prefix" -name libpreempt.so)
libdir=${preempt%/*}

build_with_cmake() {
  cmake -S "$consumer" -B "$work/build" -DCMAKE_BUILD_TYPE=Release "$@" >/dev/null
  cmake --build "$work/build" >/dev/null
  "$work/build/program"
  if [[ -e $libdir/libhalopencl.so ]]; then
    "$work/build/opencl_program"
  fi
}

build_with_cc() {
  cc -std=c11 -Wall -Wextra -Werror "$consumer/program.c" -o "$work/program" "$@"
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
    build_with_cc $(pkg-config --cflags --libs xsched-soft)
    ;;
  cc)
    build_with_cc -I"$prefix/include" -L"$libdir" -lhalsoft -lpreempt
    ;;
  programs)
    for program in xserver xsched xcli; do
      "$prefix/bin/$program" --version
    done
    # Each platform's shim is found beside the program, not where it was built or first installed.
    "$prefix/bin/xsched" doctor >"$work/doctor" || true
    for shim in "$libdir"/libshim*.so; do
      grep -F "$shim" "$work/doctor"
    done
    for unit in "$prefix"/lib/systemd/*/xserver.service; do
      grep "^ExecStart=$work/first/bin/xserver " "$unit"
    done
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
