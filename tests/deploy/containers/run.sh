#!/bin/bash
# Usage: run.sh BUILD [TEST…]
# Containers of Podman and of runc alone, with devices of `xsched cdi generate`, beside programs of this machine on one server. The load is
# OpenCL on the CPU (PoCL). BUILD: a build's folder; of its build/portable-* the archive is taken for an image with an old glibc, if it has
# been made. Needs root, podman, runc, uidmap, mmdebstrap and Debian's mirror (the images are made here), so it is not part of CI.
set -euo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/deploy/needs.sh
. tests/deploy/needs.sh
needs_root "containers of several users"
needs_programs --deploy podman runc newuidmap mmdebstrap
new=$(clean_system bookworm)
old=$(clean_system bullseye)
archive=
for file in build/portable-"$(uname -m)"/xsched-*.tar.xz; do
  [[ ! -e $file ]] || archive=$file
done

# Its own view of /etc, in which there are other users and other devices.
exec unshare --mount --propagation private python3 -B tests/deploy/containers/containers.py --build "$build" --image "$new" \
  --old-image "$old" ${archive:+--archive "$archive"} "$@"
