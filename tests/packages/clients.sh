# Sourced by scenario.sh and service_scenario.sh, which run in systems of their own with PoCL: two clients, and what is to be true of them.
# The scenario sets `urgent` and `other` to the clients that it has started.
# shellcheck shell=bash disable=SC2034,SC2154

say() { echo "-- $*"; }
fail() {
  echo "$(basename "$0"): $*" >&2
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

# What is there of XSched: nothing before it is installed, and after it is removed.
traces() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /packages -o -path /home \) -prune -o \
    \( -iname '*xsched*' -o -iname '*xserver*' -o -name 'libpreempt*' \) -print | grep -vE '^/var/(log|cache|lib/(apt|dpkg/info/format))' || true
}
[[ -z $(traces) ]] || fail "something of XSched is there before it is installed: $(traces)"
useradd --create-home tester
