#!/bin/bash
# Usage: scenario.sh INSTALL UPGRADE REMOVE
# Runs as root in a system of its own (scripts/test-packages.sh) that has PoCL, and has not had XSched yet. Each argument is a command
# line. Packages are installed, upgraded and removed while a server and clients run.
set -euo pipefail
install=$1
upgrade=$2
remove=$3

say() { echo "-- $*"; }
fail() {
  echo "scenario.sh: $*" >&2
  xsched list >&2 || true
  exit 1
}
# until_true SECONDS command…
until_true() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# ---- the server and the clients ----

# As systemd would, which does not run here.
start_server() {
  local words
  read -ra words <<<"$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/xserver.service)"
  install -d -o xsched -g xsched -m 755 /run/xsched
  setpriv --reuid xsched --regid xsched --init-groups "${words[@]}" &
  server=$!
  until_true 10 test -S /run/xsched/xserver.sock || fail "the server does not listen"
}
stop_server() {
  kill "$server"
  wait "$server" || true
}

seconds=600 # that a client runs, if nothing ends it before
# start_client PRIORITY OUTPUT: the program of `xsched demo`, which never pauses, as a user. Sets `client`.
start_client() {
  setpriv --reuid tester --regid tester --init-groups env POCL_DEVICES=pthread HOME=/home/tester \
    xsched run --priority "$1" -- /usr/libexec/xsched/xsched-latency-task --continuous --kernel-ms 2 --loops-per-ms 20 --seconds "$seconds" --json "$2" &
  client=$!
}
state_of() { xsched list | awk -v pid="$1" '$2 == pid {print $5}'; }
is_in_state() { [[ $(state_of "$1") == "$2" ]]; }
# The urgent client runs, and the other is held for it.
both_are_scheduled() {
  until_true 15 is_in_state "$urgent" run || fail "the urgent client is not scheduled ($1)"
  until_true 15 is_in_state "$other" held || fail "the other client is not scheduled ($1)"
  say "$1: scheduled"
}
ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
# A held client uses next to no processor time: so it is the server's absence that lets it go on.
other_runs() {
  local before
  before=$(ticks "$other")
  sleep 2
  (($(ticks "$other") - before > 50)) || fail "the client does not go on ($1)"
  say "$1: the other client goes on"
}
both_live() {
  local pid
  for pid in "$urgent" "$other"; do
    kill -0 "$pid" || fail "a client has ended ($1)"
  done
}

# ---- the scenario ----

# What is there of XSched.
traces() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /packages -o -path /home \) -prune -o \
    \( -iname '*xsched*' -o -iname '*xserver*' -o -name 'libpreempt*' \) -print | grep -vE '^/var/(log|cache|lib/(apt|dpkg/info/format))' || true
}
[[ -z $(traces) ]] || fail "something of XSched is there before it is installed: $(traces)"
useradd --create-home tester

say "$install"
$install
xsched --version
[[ $(getent passwd xsched | cut -d : -f 7) == */nologin ]] || fail "the server has no user, or one who can log in"
[[ ! -e /run/xsched ]] || fail "a server was started, without systemd"
systemd-analyze verify --man=no /usr/lib/systemd/system/xserver.service /usr/lib/systemd/system/xserver-http.service
XDG_RUNTIME_DIR=/tmp systemd-analyze --user verify --man=no /usr/lib/systemd/user/xserver.service
systemd-sysusers --dry-run /usr/lib/sysusers.d/xsched.conf
if /usr/bin/python3 -B -c 'import xsched' 2>/dev/null; then
  /usr/bin/python3 -B -c 'import xsched; print(xsched.library("preempt")._name)'
fi

start_server
start_client 10 /home/tester/urgent.json && urgent=$client
start_client 0 /home/tester/other.json && other=$client
both_are_scheduled "installed"
first=$(readlink "/proc/$server/exe")

say "$upgrade"
$upgrade
both_live "upgrade"
[[ $(readlink "/proc/$server/exe") == "$first (deleted)" ]] || fail "the upgrade has not replaced the server"
both_are_scheduled "upgraded, the former server still runs"
start_client 5 /home/tester/third.json && third=$client
until_true 15 is_in_state "$third" held || fail "a new client is not scheduled by the former server"
kill "$third"
wait "$third" || true

stop_server
other_runs "without a server"
start_server
[[ $(readlink "/proc/$server/exe") == "$first" ]] || fail "the new server is not the one that was installed"
both_are_scheduled "with the new server"
both_live "new server"

say "$remove"
$remove
both_live "removal"
stop_server
other_runs "removed"
both_live "end"
kill "$urgent" "$other"
wait "$urgent" "$other" || true
[[ -z $(traces) ]] || fail "what remains after the removal: $(traces)"
say "nothing remains"
