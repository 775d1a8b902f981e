#!/bin/bash
# Usage: fetch-aarch64-system.sh
# Puts Debian 12 for arm64 into build/aarch64-system, as far as cmake/aarch64.cmake needs it: libc, and OpenCL with PoCL. These are some
# 90 MB of packages, from this system's mirrors. They are unpacked, not installed. Needs mmdebstrap, and no root. Does nothing if it is
# there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  ocl-icd-opencl-dev pocl-opencl-icd
  libspdlog-dev libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev # the server
)
place=build/aarch64-system
# What was made by another version of this script is made anew.
made_by=$(sha256sum "scripts/$(basename "$0")")
[[ $(cat "$place/made_by" 2>/dev/null) != "$made_by" ]] || exit 0

mirrors=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
  [[ ! -s $file ]] || mirrors+=("$file")
done

mkdir -p build
work=$(mktemp -d build/aarch64-system.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching OpenCL for arm64"
mmdebstrap --quiet --mode=chrootless --variant=extract --architectures=arm64 --aptopt='Acquire::Retries "3"' \
  --include="${packages[*]}" bookworm "$work" "${mirrors[@]}"
# An emulated program has this machine's devices and settings. And the compiler of PoCL runs this machine's linker, so it must find this
# machine's files of the cross compiler.
(cd "$work" && rm -r dev etc tmp var usr/lib/gcc)
echo "$made_by" >"$work/made_by"
chmod 755 "$work"
rm -rf "$place"
# Atomically, so that an incomplete folder is never found.
mv "$work" "$place"
