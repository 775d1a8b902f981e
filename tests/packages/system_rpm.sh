#!/bin/bash
# Usage: system_rpm.sh ROOT FILE
# Makes FILE, an RPM package without files, which provides what the Debian system in ROOT has: its libraries, as RPM's own generator sees
# them, its Python, and the programs that packages require by their files. So rpm can check there what XSched's packages require, though the
# system's own packages came without rpm.
set -euo pipefail
root=$(realpath "$1")
file=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$(chroot "$root" /usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true)
{
  # rtld: its loader finds symbols by GNU's hash tables.
  printf '%s\n' 'Name: system' 'Version: 1' 'Release: 1' 'Summary: What this system has' 'License: none' 'Provides: rtld(GNU_HASH)'
  for program in /bin/sh /usr/bin/pkg-config; do
    [[ ! -e $root/$program ]] || echo "Provides: $program"
  done
  [[ -z $python ]] || echo "Provides: python(abi) = $python"
  find "$root"/usr/lib/*-linux-gnu -name '*.so.*' -type f -print | /usr/lib/rpm/elfdeps --provides | sort -u | sed 's/^/Provides: /'
  printf '%s\n' '%description' 'Stands for the packages of a system that came without rpm.' '%files'
} >"$work/system.spec"
rpmbuild --quiet -bb --define "_topdir $work" --define "_rpmdir $work" --define '_rpmfilename system.rpm' "$work/system.spec"
mv "$work/system.rpm" "$file"
