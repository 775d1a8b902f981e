#!/bin/bash
# Usage: services.sh BASE FIRST NEXT
# Runs service_scenario.sh with Debian packages and with RPM packages, each in a container that systemd has started, made from BASE, an
# archive of a Debian system with PoCL. FIRST and NEXT: folders of the packages, in two versions. Needs podman, root, and Debian's mirror.
set -euo pipefail
base=$1
declare -A folders=([first]="$2" [next]="$3")
tests=$(dirname "$(realpath "$0")")

# shellcheck source=tests/packages/podman.sh
. "$tests/podman.sh"

# scenario KIND INSTALL UPGRADE REMOVE: with the packages of that kind in /packages/first and /packages/next.
scenario() {
  local kind=$1
  shift
  # Privileged: so that systemd can confine the server as the unit says.
  podman run --detach --name "$name" --systemd always --privileged --network host "${limits[@]}" "$name" /sbin/init >/dev/null
  podman exec "$name" mkdir -p /packages/first /packages/next
  podman cp "$tests/clients.sh" "$name:/packages"
  podman cp "$tests/service_scenario.sh" "$name:/packages"
  local which file state
  for which in first next; do
    for file in "${folders[$which]}"/*."$kind"; do
      [[ $file == *-dbgsym_* || $file == *.src.rpm ]] || podman cp "$file" "$name:/packages/$which"
    done
  done
  for _ in {1..100}; do
    state=$(podman exec "$name" systemctl is-system-running || true)
    [[ $state == running ]] && break
    sleep 0.2
  done
  [[ $state == running ]] || {
    podman exec "$name" systemctl --failed >&2
    exit 1
  }
  if [[ $kind == rpm ]]; then
    # What they need of the system is Debian's here.
    podman exec "$name" apt-get -qq -y install --no-install-recommends rpm pkgconf libfmt9 libspdlog1.10 libmicrohttpd12 libncursesw6 python3-minimal >/dev/null
    "$tests/system_rpm.sh" "$(podman mount "$name")" "$work/system.rpm"
    podman cp "$work/system.rpm" "$name:/packages"
    podman exec "$name" rpm -i /packages/system.rpm
  fi
  podman exec --env DEBIAN_FRONTEND=noninteractive "$name" bash /packages/service_scenario.sh "$@" || {
    podman exec "$name" journalctl --no-pager --lines 40 >&2
    exit 1
  }
  podman rm --force --time 1 --volumes "$name" >/dev/null
}

podman import --quiet "$base" "$name-base" >/dev/null
cat >"$work/Containerfile" <<END
FROM localhost/$name-base
RUN apt-get -q update && apt-get -qq -y install --no-install-recommends systemd systemd-sysv
END
podman build --quiet --network host "${limits[@]}" --tag "$name" "$work" >/dev/null

echo "-- a system that systemd has started: Debian packages"
scenario deb "apt-get -qq -y install --no-install-recommends /packages/first/*.deb" \
  "apt-get -qq -y install --no-install-recommends /packages/next/*.deb" \
  "apt-get -qq -y purge xsched xsched-server libxsched2 libxsched-dev python3-xsched"
echo "-- a system that systemd has started: RPM packages"
scenario rpm "rpm -i /packages/first/*.rpm && systemctl enable --now xserver" "rpm -U /packages/next/*.rpm" \
  "rpm -e xsched xsched-server xsched-libs xsched-devel python3-xsched"
