#!/bin/bash
# Usage: containers.sh PACKAGES BASE
# Builds the images of packaging/container from PACKAGES, a folder of Debian packages, over BASE, an archive of a system with PoCL. Then a
# server in one container schedules two clients in two others, which have XSched's libraries alone. Needs podman, and Debian's mirror.
set -euo pipefail
packages=$1
base=$2
containers=$(dirname "$(realpath "$0")")/../../packaging/container

# shellcheck source=tests/packages/podman.sh
. "$(dirname "$(realpath "$0")")/podman.sh"
clean() {
  podman rm --force --time 1 --volumes "$name-server" "$name-urgent" "$name-other" &>/dev/null || true
  podman volume rm --force "$name" &>/dev/null || true
  podman rmi --force "$name-client" "$name-libraries" "$name-server" "$name-base" &>/dev/null || true
  rm -rf "$work"
}
fail() {
  echo "containers.sh: $*" >&2
  podman logs "$name-server" >&2 || true
  podman exec "$name-server" xsched list >&2 || true
  exit 1
}

podman import --quiet "$base" "$name-base" >/dev/null
build=(podman build --quiet --network host "${limits[@]}" --build-arg "BASE=localhost/$name-base")
"${build[@]}" --file "$containers/Containerfile" --target server --tag "$name-server" "$packages" >/dev/null
"${build[@]}" --file "$containers/Containerfile" --target libraries --tag "$name-libraries" "$packages" >/dev/null

# An image of somebody else's: the program of `xsched demo` stands for their program.
dpkg-deb --extract "$packages"/xsched_*.deb "$work/xsched"
mkdir "$work/client"
cp "$work/xsched/usr/libexec/xsched/xsched-latency-task" "$work/client"
cat >"$work/client/Containerfile" <<END
FROM localhost/$name-base
COPY --from=localhost/$name-libraries / /
ENV XSCHED_SCHEDULER=GLB XSCHED_AUTO_XQUEUE=ON OPENCL_LAYERS=/opt/xsched/lib/libshimopencl.so POCL_DEVICES=pthread
COPY xsched-latency-task /usr/local/bin/
END
podman build --quiet --network host "${limits[@]}" --tag "$name-client" "$work/client" >/dev/null

run=(podman run --detach --network none --pid host "${limits[@]}" --volume "$name:/run/xsched")
"${run[@]}" --name "$name-server" "$name-server" >/dev/null
for _ in {1..50}; do
  podman exec "$name-server" test -S /run/xsched/xserver.sock && break
  sleep 0.2
done
client=(xsched-latency-task --continuous --kernel-ms 2 --loops-per-ms 20 --seconds 120)
"${run[@]}" --name "$name-urgent" --env XSCHED_AUTO_XQUEUE_PRIORITY=10 "$name-client" "${client[@]}" >/dev/null
"${run[@]}" --name "$name-other" --env XSCHED_AUTO_XQUEUE_PRIORITY=0 "$name-client" "${client[@]}" >/dev/null

# The urgent one runs, and the other is held for it.
state_at() { podman exec "$name-server" xsched list | awk -v priority="$1" '$6 == priority {print $5}'; }
for _ in {1..100}; do
  [[ $(state_at 10) == run && $(state_at 0) == held ]] && break
  sleep 0.2
done
[[ $(state_at 10) == run && $(state_at 0) == held ]] || fail "the clients are not scheduled"
podman exec "$name-server" xsched list
podman rm --force --time 1 "$name-urgent" >/dev/null
for _ in {1..50}; do
  [[ $(state_at 0) == run ]] && break
  sleep 0.2
done
[[ $(state_at 0) == run ]] || fail "the other client is held for one that has ended"
echo "a server in one container schedules clients in two others"
