#!/bin/bash
# Usage: wheel.sh BUILD [FOLDER]
# Makes a wheel (by default in BUILD): the Python package with the programs and libraries of archive.sh in it. So `pip install FILE` needs
# nothing else, on the same systems as the archive: manylinux_2_17 if BUILD is a portable one, which auditwheel confirms
# (portable-toolchain.sh). Needs setuptools and wheel of PYTHON (default: Debian's).
set -euo pipefail
build=$(realpath "$1")
folder=$(realpath "${2:-$build}")
source=$(realpath "$(dirname "$0")/../python")
python=${PYTHON:-/usr/bin/python3}

# As in archive.sh: each file has the time of the commit, and the same rights for whoever builds.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/archive.sh" "$build" "$work/archive.tar.xz" >/dev/null
mkdir "$work/archive"
tar -C "$work/archive" --strip-components 1 -xf "$work/archive.tar.xz"

# Without what pip has left there: it would pack its modules of then.
mkdir "$work/python"
cp -r "$source"/{README.md,pyproject.toml,xsched} "$work/python"
find "$work/python" -name __pycache__ -prune -exec rm -r {} +
chmod -R u=rwX,go=rX "$work/python"  # whatever the umask was that the sources were fetched with
installed=$work/python/xsched/_installed
# A wheel has no links, so each becomes a file. What only compilers and this very package read is left out.
cp -rL "$work/archive" "$installed"
rm -rf "$installed"/{include,lib/cmake,lib/pkgconfig,share/{man,zsh,bash-completion,fish},share/xsched/python}
for versioned in "$installed"/lib/lib{preempt,hal*,shim*}.so.*.*.*; do
  rm "$versioned"
done

machine=$(sed -n "s/^XSCHED_MACHINE:[A-Z]*=//p" "$build/CMakeCache.txt")
platform=linux_$(uname -m)
[[ -z $machine ]] || platform=manylinux_2_17_$machine
cat >"$work/python/setup.cfg" <<END
[bdist_wheel]
plat_name = $platform
END
"$python" -m pip --disable-pip-version-check wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir "$work" "$work/python"
wheel=$(echo "$work"/xsched-*-"$platform".whl)
if [[ -n $machine ]]; then
  # It reads which libraries the files need, and which versions of their symbols. Versions that a file defines itself do not count.
  audited=$(PYTHONPATH=$source/../build/portable/$machine/auditwheel "$python" -m auditwheel show --json "$wheel")
  if [[ $audited != *"\"overall_tag\": \"$platform\""* ]]; then
    echo "wheel.sh: auditwheel does not find $platform: $audited" >&2
    exit 1
  fi
fi
mv "$wheel" "$folder"
wheel=$folder/$(basename "$wheel")
"$(dirname "$0")/sbom.py" "$wheel" --version "$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")" --sysroot "$(dirname "$0")/../build/portable/${machine:-none}/sysroot" >&2
echo "$wheel"
