#!/bin/bash
# Usage: service_scenario.sh INSTALL UPGRADE REMOVE
# As scenario.sh, in a system that systemd has started (services.sh): the packages, with their units, start the server, restart it with the new
# version, and end it. Between that, it crashes.
set -euo pipefail
install=$1
upgrade=$2
remove=$3

# shellcheck source=tests/packages/clients.sh
. "$(dirname "$0")/clients.sh"

server() { systemctl show --property MainPID --value xserver; }
server_is_another() { (($(server) != 0 && $(server) != $1)); }
# The kernel's list of capabilities and of system calls (2: a filter), as xserver.service says.
confined() { grep -qx 'CapBnd:[[:space:]]*0*' "/proc/$1/status" && grep -qx 'Seccomp:[[:space:]]*2' "/proc/$1/status"; }

say "$install"
bash -euc "$install"
until_true 10 systemctl --quiet is-active xserver || fail "the service does not run"
systemctl --quiet is-enabled xserver || fail "the service would not run after the next start of the system"
systemctl stop xserver
# As a start of the machine does, also where the service is disabled: containers have the folder mounted.
rm -r /run/xsched
systemd-tmpfiles --create --boot --prefix /run/xsched
[[ $(stat -c '%U %a' /run/xsched) == "xsched 755" ]] || fail "containers with a class do not start without a server"
systemctl start xserver
before=$(server)
[[ $(stat --format %U "/proc/$before") == xsched ]] || fail "the server runs as another user"
confined "$before" || fail "the server may do more than its unit says"
if systemctl --quiet is-active xserver-http.socket xserver-metrics.socket; then
  fail "what is off until it is enabled runs"
fi

start_client 10 /home/tester/urgent.json && urgent=$client
start_client 0 /home/tester/other.json && other=$client
both_are_scheduled "installed"

say "$upgrade"
bash -euc "$upgrade"
both_live "upgrade"
until_true 10 server_is_another "$before" || fail "the upgrade has not restarted the server"
[[ $(readlink "/proc/$(server)/exe") == /usr/bin/xserver ]] || fail "the new server is not the one that was installed"
both_are_scheduled "upgraded, the new server runs"

before=$(server)
kill -KILL "$before"
until_true 10 server_is_another "$before" || fail "the server does not come back after a crash"
both_are_scheduled "crashed and restarted"
systemctl reload xserver
both_are_scheduled "reloaded"

systemctl stop xserver
other_runs "without a server"
systemctl start xserver
both_are_scheduled "started again"

before=$(server)
say "$remove"
bash -euc "$remove"
both_live "removal"
[[ ! -e /proc/$before ]] || fail "the server runs without its package"
other_runs "removed"
[[ $(systemctl list-unit-files --no-legend 'xserver*' | wc -l) == 0 ]] || fail "systemd still knows units of it"
[[ $(systemctl list-units --failed --no-legend | wc -l) == 0 ]] || fail "a unit has failed: $(systemctl list-units --failed --no-legend)"
both_live "end"
kill "$urgent" "$other"
wait "$urgent" "$other" || true
[[ -z $(traces) ]] || fail "what remains after the removal: $(traces)"
say "nothing remains"
