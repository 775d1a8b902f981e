#!/bin/bash
# Usage: portable-toolchain.sh [MACHINE]
# Gets what cmake/portable.cmake needs to build for every Linux with glibc 2.17 or later, into build/portable: the compiler zig from
# PyPI (100 MB), which has the interfaces of all versions of glibc; and in build/portable/MACHINE the libraries that are linked statically,
# from Debian 12, and auditwheel, which checks wheels, from PyPI. MACHINE: x86_64 or aarch64, by default this one. Needs Debian 12. Does
# nothing if it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

zig=0.17.1
auditwheel=6.8.2
machine=${1:-$(uname -m)}
case $machine in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *)
    sed -n '2,6s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
packages=(
  libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 libcli11-dev nlohmann-json3-dev libtomlplusplus-dev # used without their shared libraries
  libncurses-dev libtinfo6
  opencl-c-headers # without the loader, which is part of the systems where it is used
)
glibc=2.17
top=$PWD/build/portable
root=$top/$machine
# What was made by another version of this script is made anew.
made_by=$(sha256sum "scripts/$(basename "$0")")
[[ $(cat "$root/made_by" 2>/dev/null) != "$made_by" ]] || exit 0

# from_pypi FOLDER PACKAGE
from_pypi() { python3 -m pip install --quiet --root-user-action ignore --disable-pip-version-check --only-binary :all: --target "$1" "$2"; }
if [[ ! -x $top/zig-$zig/ziglang/zig ]]; then
  echo "fetching the compiler (ziglang==$zig)"
  rm -rf "$top/zig-$zig"
  from_pypi "$top/zig-$zig" "ziglang==$zig"
fi
rm -rf "$root"
mkdir -p "$root"/{bin,apt/lists/partial,apt/sources,packages,sysroot}
from_pypi "$root/auditwheel" "auditwheel==$auditwheel"
ln -s "../zig-$zig/ziglang/zig" "$top/$machine/zig"
for tool in cc c++; do
  cat >"$root/bin/$tool" <<END
#!/bin/sh
exec "$root/zig" $tool -target $machine-linux-gnu.$glibc "\$@"
END
done
for tool in ar ranlib; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$root/zig" $tool >"$root/bin/$tool"
done
chmod 755 "$root"/bin/*

# This system's sources of Debian's packages, for that processor, with the sources of packages.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  case $file in
    *.sources)
      grep -q debian-archive-keyring "$file" || continue
      sed -e 's/^Types:.*/Types: deb deb-src/' -e '/^Architectures:/d' "$file" >"$root/apt/sources/$(basename "$file")"
      ;;
    *.list)
      [[ ! -e $file ]] || sed -n '/^deb [^[]*debian/ {p; s/^deb /deb-src /p}' "$file" >"$root/apt/sources/$(basename "$file")"
      ;;
  esac
done
apt() {
  apt-get -qq -o APT::Architecture=$debian -o APT::Architectures::=$debian -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null \
    -o "Dir::Etc::SourceParts=$root/apt/sources" -o "Dir::State::Lists=$root/apt/lists" -o "Dir::Cache::PkgCache=" -o "Dir::Cache::SrcPkgCache=" "$@"
}
echo "fetching libraries ($machine)"
apt update
cd "$root/packages"
apt download "${packages[@]}"
for package in *.deb; do
  dpkg-deb --extract "$package" "$root/sysroot"
done
libraries=$root/sysroot/usr/lib/$machine-linux-gnu
# So that the linker finds the static ones.
rm -f "$libraries"/lib{ncurses,ncursesw,tinfo}.so

# Debian's static libmicrohttpd needs the libraries of TLS, which a server on the loopback interface does not.
apt source libmicrohttpd >/dev/null
cd libmicrohttpd-*/
{
  ./configure --host="$machine-linux-gnu" --prefix=/usr --libdir="/usr/lib/$machine-linux-gnu" --disable-https --disable-shared --enable-static --with-pic \
    --disable-doc --disable-examples --disable-curl CC="$root/bin/cc" AR="$root/bin/ar" RANLIB="$root/bin/ranlib" \
    CFLAGS="-O2 -ffile-prefix-map=$PWD=." PKG_CONFIG=false
  make -C src/include install DESTDIR="$root/sysroot"
  make -j "$(nproc)" -C src/microhttpd install DESTDIR="$root/sysroot"
  make install-pkgconfigDATA DESTDIR="$root/sysroot"
  install -D -m 644 debian/copyright "$root/sysroot/usr/share/doc/libmicrohttpd-dev/copyright"
  # Which version it is (sbom.py).
  gzip -9n <debian/changelog >"$root/sysroot/usr/share/doc/libmicrohttpd-dev/changelog.Debian.gz"
} >"$root/libmicrohttpd.log" 2>&1 || {
  tail -n 20 "$root/libmicrohttpd.log" >&2
  exit 1
}
rm -f "$libraries"/*.la
rm -rf "$root/packages" "$root/apt"
echo "$made_by" >"$root/made_by"
