#!/bin/bash
# Usage: test-archive.sh ARCHIVE [WHEEL] [SUITE…]
# Tries the archive of a portable build (archive.sh), and its wheel (wheel.sh), in clean systems of other releases. There, a user who has
# nothing but the unpacked folder runs two programs of different priorities over the PoCL of that release, and the urgent one holds the other.
# Then with hashcat, `xsched demo`; and with Python, pip installs the wheel, the doctor finds that OpenCL is scheduled, and tests of the
# package pass. SUITE: releases of Debian, by default bookworm, trixie, sid and bullseye (glibc 2.31), whose PoCL knows no processors of
# today. An archive for another processor runs in qemu, without the demo. Needs root, mmdebstrap, and Debian's mirror.
set -euo pipefail
archive=$(realpath "$1")
shift
wheel=
if [[ ${1:-} == *.whl ]]; then
  wheel=$(realpath "$1")
  shift
fi
cd "$(dirname "$0")/.."
suites=("$@")
((${#suites[@]} != 0)) || suites=(bookworm trixie sid bullseye)
folder=$PWD/build/packages-test
mkdir -p "$folder"
# shellcheck source=tests/packages/systems.sh
. tests/packages/systems.sh
machine=${archive##*-linux-}
machine=${machine%.tar.xz}
for_machine "$machine"

# as_tester command…: in the system.
as_tester() {
  in_system "$root" setpriv --reuid tester --regid tester --init-groups env HOME=/home/tester POCL_DEVICES=pthread "$@"
}

for suite in "${suites[@]}"; do
  echo "== $suite"
  new_system "$suite"
  home=$root/home/tester
  mkdir -p "$home/tests"
  tar -C "$home" -xf "$archive"
  cp tests/packages/{archive,wheel}_scenario.sh "$home"
  cp python/tests/test_*.py tests/install/package_tests.py "$home/tests"
  [[ -z $wheel ]] || cp "$wheel" "$home"
  in_system "$root" bash -euc 'ldd --version | head -n 1; useradd --home-dir /home/tester tester; chown -R tester: /home/tester'
  as_tester bash /home/tester/archive_scenario.sh held
  # Not before: beside these, the archive would not show what it needs of the system.
  in_system "$root" bash -euc 'apt-get -qq update; apt-get -qq -y install --no-install-recommends hashcat python3-venv >/dev/null'
  # In an emulator, hashcat takes too long.
  [[ $machine != "$(uname -m)" ]] || as_tester bash /home/tester/archive_scenario.sh demo
  if [[ -n $wheel ]]; then
    as_tester bash /home/tester/wheel_scenario.sh
  fi
done
echo "== ${suites[*]}: all works"
