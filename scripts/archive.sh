#!/bin/bash
# Usage: archive.sh BUILD [FILE]
# Makes one archive (by default BUILD/xsched-<version>-linux-<machine>.tar.xz) that runs where it is unpacked. If BUILD is one of the
# presets portable-… (cmake/portable.cmake), this is every Linux with glibc 2.17 or later, which is checked (elf_needs.py); otherwise it
# is this system. The same build gives the same bytes.
set -euo pipefail
scripts=$(realpath "$(dirname "$0")")
build=$(realpath "$1")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

portable=$(cached XSCHED_MACHINE)
machine=${portable:-$(uname -m)}
name=xsched-$(cached CMAKE_PROJECT_VERSION)-linux-$machine
file=${2:-$build/$name.tar.xz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
umask 022
cmake --install "$build" --prefix "$root" --strip >/dev/null
# Units of systemd have absolute paths. What goes with them is for these alone.
rm -rf "$root"/lib/{systemd,sysusers.d,tmpfiles.d}

if [[ -n $portable ]]; then
  # What the programs have in them of others.
  for package in libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libtinfo6 libmicrohttpd-dev; do
    install -D -m 644 "$scripts/../build/portable/$machine/sysroot/usr/share/doc/$package/copyright" "$root/share/doc/licenses/$package"
  done
  "$scripts/elf_needs.py" "$root" --glibc "$(cached XSCHED_GLIBC)" >&2
fi
# In another folder the same source gives the same bytes (test-reproducible.sh).
if grep -rlF -e "$(realpath "$scripts/..")" -e "$build" "$root" >&2; then
  echo "archive.sh: these files name the folder in which they were built" >&2
  exit 1
fi

# Each file has the time of the commit.
time=${SOURCE_DATE_EPOCH:-$(git -C "$scripts" log -1 --format=%ct 2>/dev/null || date +%s)}
tar -C "$work" --sort name --owner 0 --group 0 --numeric-owner --mtime "@$time" --pax-option delete=atime,delete=ctime -cf - "$name" | xz -T1 >"$file"
# What is in it, and its checksum.
"$scripts/sbom.py" "$file" --version "$(cached CMAKE_PROJECT_VERSION)" --sysroot "$scripts/../build/portable/$machine/sysroot" >&2
echo "$file"
