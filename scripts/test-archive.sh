#!/bin/bash
# Usage: test-archive.sh ARCHIVE [SUITE…]
# Unpacks the archive of a portable build (archive.sh) in clean systems of other releases. There, a user who has nothing but the unpacked
# folder runs two programs of different priorities over the PoCL of that release, and both are scheduled. SUITE: releases of Debian, by
# default bullseye (glibc 2.31), bookworm, trixie and sid. An archive for another processor runs in qemu. Needs root, mmdebstrap, and Debian's
# mirror.
set -euo pipefail
archive=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
suites=("$@")
((${#suites[@]} != 0)) || suites=(bullseye bookworm trixie sid)
folder=$PWD/build/packages-test
mkdir -p "$folder"
# shellcheck source=tests/packages/systems.sh
. tests/packages/systems.sh
machine=${archive##*-linux-}
for_machine "${machine%.tar.xz}"

for suite in "${suites[@]}"; do
  echo "== $suite"
  new_system "$suite"
  mkdir -p "$root/home/tester"
  tar -C "$root/home/tester" -xf "$archive"
  cp tests/packages/archive_scenario.sh "$root/home/tester/"
  # shellcheck disable=SC2016  # for the shell within
  in_system "$root" bash -euc '
    ldd --version | head -n 1
    useradd --home-dir /home/tester tester
    chown -R tester: /home/tester
    exec setpriv --reuid tester --regid tester --init-groups env HOME=/home/tester POCL_DEVICES=pthread bash /home/tester/archive_scenario.sh'
done
echo "== the archive runs on ${suites[*]}"
