#!/bin/bash
# Usage: installed_tree.sh BUILD find_package|pkg-config
# Installs BUILD, moves the installed tree elsewhere, and builds and runs a program against it.
set -euo pipefail
build=$1
way=$2
consumer=$(dirname "$(realpath "$0")")/consumer

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
prefix=$work/moved
mv "$work/first" "$prefix"
unset XSCHED_SCHEDULER XSCHED_POLICY

case $way in
  find_package)
    cmake -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
    cmake --build "$work/build" >/dev/null
    "$work/build/program"
    ;;
  pkg-config)
    pc=$(find "$prefix" -name xsched-soft.pc)
    export PKG_CONFIG_PATH=${pc%/*}
    # shellcheck disable=SC2046  # flags are words
    cc -std=c11 -Wall -Wextra -Werror "$consumer/program.c" -o "$work/program" \
      $(pkg-config --cflags --libs xsched-soft)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir xsched-soft) "$work/program"
    ;;
  *)
    echo "unknown way: $way" >&2
    exit 2
    ;;
esac

# No text file of it (binaries may carry debug information) may name where it was built or first installed.
if grep -rIlE "$work/first|$(realpath "$build")" "$prefix"; then
  echo "these files name the place of the build" >&2
  exit 1
fi
