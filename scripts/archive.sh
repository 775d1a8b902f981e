#!/bin/bash
# Usage: archive.sh BUILD [FILE]
# Makes one archive (by default BUILD/xsched-<version>-<machine>.tar.gz) that runs where it is unpacked, on every Linux with
# glibc 2.34 and libstdc++ of GCC 12 or later: Ubuntu 22.04 and 24.04, Debian 12. What else the programs need is in it.
set -euo pipefail
build=$(realpath "$1")

# What each of these systems has; and OpenCL's loader, which belongs to the system's drivers. Every other library goes into the archive.
systems='^(ld-linux.*|libc|libm|libstdc\+\+|libgcc_s|libOpenCL)\.so'
newest_glibc=2.34
newest_libstdcxx=3.4.30

version=$("$build/bin/xsched" --version | awk '{print $NF}')
name=xsched-$version-$(uname -m)
file=${2:-$build/$name.tar.gz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
cmake --install "$build" --prefix "$root" --strip >/dev/null
# Units of systemd have absolute paths.
rm -rf "$root"/lib/{systemd,sysusers.d}
lib=$(dirname "$(find "$root" -name libpreempt.so)")

# Copies the libraries that a file needs and the systems lack, with their licenses.
add_libraries() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ "/" {print $1, $3}' | while read -r needed path; do
    [[ ! $needed =~ $systems && ! -e $lib/$needed ]] || continue
    install -m 644 "$path" "$lib/$needed"
    patchelf --set-rpath "\$ORIGIN" "$lib/$needed"
    package=$(dpkg-query -S "*/$(basename "$(realpath "$path")")" | sed -n "1s/:.*//p")
    install -D -m 644 "/usr/share/doc/$package/copyright" "$root/share/doc/licenses/$package"
  done
}

mapfile -t programs < <(find "$root/bin" "$root/libexec" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print)
for program in "${programs[@]}"; do
  add_libraries "$program"
  patchelf --set-rpath "\$ORIGIN/$(realpath --relative-to "$(dirname "$program")" "$lib")" "$program"
done

# check NAME NEWEST: no file asks for a newer version of that.
check() {
  local found
  found=$(find "$root" -type f -exec sh -c 'readelf --version-info "$1" 2>/dev/null' _ {} \; | grep -oP "(?<=Name: $1_)[0-9.]+" | sort -uV | tail -n 1)
  if [[ $(printf '%s\n' "$found" "$2" | sort -V | tail -n 1) != "$2" ]]; then
    echo "archive.sh: a file needs $1 $found, and $2 is promised" >&2
    exit 1
  fi
}
check GLIBC $newest_glibc
check GLIBCXX $newest_libstdcxx

tar -C "$work" --owner 0 --group 0 --numeric-owner -czf "$file" "$name"
echo "$file"
