#!/bin/bash
# Usage: scenario.sh INSTALL UPGRADE REMOVE
# Runs as root in a system of its own (scripts/test-packages.sh) that has PoCL, and has not had XSched yet. Each argument is a command
# line. Packages are installed, upgraded and removed while a server and clients run.
set -euo pipefail
install=$1
upgrade=$2
remove=$3

# shellcheck source=tests/packages/clients.sh
. "$(dirname "$0")/clients.sh"

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

# ---- the scenario ----

say "$install"
$install
xsched --version
[[ $(getent passwd xsched | cut -d : -f 7) == */nologin ]] || fail "the server has no user, or one who can log in"
[[ $(stat -c '%U %a' /etc/xsched) == "root 755" ]] || fail "the server's user cannot read /etc/xsched"
[[ ! -e /run/xsched/xserver.sock ]] || fail "a server was started, without systemd"
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
