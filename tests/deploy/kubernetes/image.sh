#!/bin/bash
# Usage: image.sh BASE BUILD
# Builds the image by the commands of docs/deploy/kubernetes.md, of packages of what is committed and of BUILD's agent, over BASE, an archive of
# Debian; and runs it (image.py). Needs root, podman, runc, what `make packages` needs, and Debian's mirror.
set -euo pipefail
base=$1
build=$(realpath "$2")
cd "$(dirname "$0")/../../.."

base_image=localhost/xsched-test-$$-base
# As on the page, but over BASE, and with not more descriptors and processes than this machine allows; runc, because crun refuses hybrid cgroups.
podman() {
  local verb=$1
  shift
  [[ $verb != build ]] || set -- --quiet --network host --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --build-arg "BASE=$base_image" "$@"
  command podman --runtime runc "$verb" "$@"
}
images=("$base_image")
clean() { podman rmi --force "${images[@]}" &>/dev/null || true; }
trap clean EXIT

# `make packages` makes those for RPM as well. Those that were made since the last commit are good enough.
[[ -n $(find build/packages -name 'xsched-server_*.deb' -newermt "@$(git log -1 --format=%ct)" 2>/dev/null) ]] || scripts/packages.sh --deb
# The page has the preset `release`.
DESTDIR=$PWD/build/agent cmake --install "$build" --component kubernetes >/dev/null
mapfile -t commands < <(python3 -B tests/deploy/page.py kubernetes "podman build")
[[ ${#commands[@]} == 3 && ${commands[0]} == "make packages" && ${commands[1]} == cp\ * ]] || {
  echo "image.sh: the page has other commands: ${commands[*]}" >&2
  exit 1
}
image=$(sed -n 's/.* -t \([^ ]*\) .*/\1/p' <<<"${commands[2]}")
images=("$image" "${images[@]}")
podman import --quiet "$base" "$base_image" >/dev/null
eval "${commands[1]}"
eval "${commands[2]}" >/dev/null
build/kubernetes/bin/python -B tests/deploy/kubernetes/image.py --build "$build" --image "$image"
