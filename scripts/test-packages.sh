#!/bin/bash
# Usage: test-packages.sh [SUITE…]
# Builds the packages, and installs, upgrades and removes them in clean systems while a server and clients run
# (tests/packages/scenario.sh): as Debian packages and as RPM packages. SUITE: a release of Debian (bookworm, trixie), by default that
# of this machine. For another one, the packages are built in it. Then the same where systemd runs, and the container images, if podman is
# here. Needs root, debhelper, lintian, mmdebstrap and rpm, and Debian's mirror.
# The second version, for the upgrade, is compiled from the cache of the first one.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
# shellcheck disable=SC1091  # it is everywhere
here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suites=("$@")
((${#suites[@]} != 0)) || suites=("$here")
if ((EUID != 0)); then
  echo "test-packages.sh: needs root, for systems of their own (chroot)" >&2
  exit 1
fi

folder=$top/build/packages-test
mkdir -p "$folder"
say() { echo "== $*"; }

# shellcheck source=tests/packages/systems.sh
. tests/packages/systems.sh

# build SUITE FOLDER [--version VERSION]: in that system, where Build-Depends says what is needed; in this one if it is the same.
build() {
  local suite=$1 to=$2
  shift 2
  if [[ $suite == "$here" ]]; then
    scripts/packages.sh "$@" "$to" >/dev/null
    return
  fi
  new_system "$suite"
  git clone --quiet --no-hardlinks "$top" "$root/source"
  mkdir -p "$root/source/build"
  scripts/fetch-cuda-headers.sh
  [[ ! -d build/cuda-headers ]] || cp -r build/cuda-headers "$root/source/build"
  [[ ! -d /usr/local/cuda/include ]] || cp -rL --parents /usr/local/cuda/include "$root"
  # shellcheck disable=SC2016  # for the shell within
  in_system "$root" bash -euc '
    apt-get -qq update
    apt-get -qq -y install --no-install-recommends git build-essential >/dev/null
    cd /source
    git config --global safe.directory "*"
    ln -s packaging/debian debian
    apt-get -qq -y build-dep --no-install-recommends ./ >/dev/null
    rm debian
    scripts/packages.sh --deb "$@"' _ "$@"
  mkdir -p "$to"
  cp "$root"/source/build/packages/*.* "$to"
}

for suite in "${suites[@]}"; do
  say "$suite: packages"
  results=$folder/$suite
  rm -rf "$results"
  mkdir "$results"
  build "$suite" "$results/build"
  mv "$results/build" "$results/first"
  version=$(dpkg-deb -f "$results"/first/xsched_*.deb Version)
  # It is only installed, and compressing debug symbols takes longer than all else that no cache spares.
  DEB_BUILD_OPTIONS=noautodbgsym build "$suite" "$results/build" --version "${version%-*}.1"
  mv "$results/build" "$results/next"

  if [[ $suite == "$here" ]]; then
    say "lintian"
    lintian --allow-root --info --pedantic --fail-on error,warning "$results"/first/*.changes
    say "the digests of the RPM packages"
    rpm -K "$results"/first/*.rpm
    say "the source package, rebuilt where nobody gives its version"
    source=$(rpmspec -P <(rpm2cpio "$results"/first/*.src.rpm | cpio --quiet -i --to-stdout xsched.spec) | sed -n 's/^Source0: *//p')
    rpm -qpl "$results"/first/*.src.rpm | grep -qxF "$source"
  fi

  say "$suite: Debian packages, with a server and clients"
  new_system "$suite"
  mkdir "$root/packages"
  cp tests/packages/{scenario,clients}.sh "$root/packages"
  for which in first next; do
    mkdir "$root/packages/$which"
    cp "$results/$which"/*.deb "$root/packages/$which"
    rm -f "$root/packages/$which"/*-dbgsym_*
  done
  in_system "$root" bash -c 'apt-get -q update >/dev/null'
  in_system "$root" /packages/scenario.sh "apt-get -qq -y install --no-install-recommends /packages/first/*.deb" \
    "apt-get -qq -y install --no-install-recommends /packages/next/*.deb" \
    "apt-get -qq -y purge xsched xsched-server libxsched2 libxsched-dev python3-xsched"

  if [[ $suite == "$here" ]]; then
    say "RPM packages, in the same system, which has what they need"
    rm -r "$root/packages"/{first,next} "$root/home/tester"
    for which in first next; do
      mkdir "$root/packages/$which"
      cp "$results/$which"/*.rpm "$root/packages/$which"
      rm -f "$root/packages/$which"/*.src.rpm
    done
    in_system "$root" bash -c 'userdel tester; apt-get -qq -y install --no-install-recommends rpm pkgconf >/dev/null'
    tests/packages/system_rpm.sh "$root" "$root/packages/system.rpm"
    in_system "$root" rpm -i /packages/system.rpm
    in_system "$root" /packages/scenario.sh "rpm -i /packages/first/*.rpm" "rpm -U /packages/next/*.rpm" \
      "rpm -e xsched xsched-server xsched-libs xsched-devel python3-xsched"
  fi
done
remove_system
root=

if command -v podman >/dev/null && [[ -d $folder/$here/first ]]; then
  say "the packages, where systemd runs"
  tests/packages/services.sh "$(base "$here")" "$folder/$here"/{first,next}
  say "container images"
  tests/packages/containers.sh "$folder/$here/first" "$(base "$here")"
fi
say "the packages work"
