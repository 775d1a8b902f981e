#!/bin/bash
# Usage: archive_scenario.sh held|demo
# Run by test-archive.sh in a clean system, as a user in whose home the archive is unpacked: held: an urgent program beside one that always
# has work, by the way to reach them that the doctor names for this system. The urgent one holds the other, as the server has recorded.
# demo: `xsched demo`, which needs hashcat, and layers. The tasks of its urgent program are shorter under XSched.
set -euo pipefail
cd
PATH=$(echo ~/xsched-*/bin):$PATH
task=$(find ~/xsched-*/ -name xsched-latency-task -type f)
fail() {
  echo "archive_scenario.sh: $*" >&2
  exit 1
}
is_true() { awk "BEGIN {exit !($1)}"; }

route=()
# The OpenCL loader of Debian 11 takes no layers.
said=$(xsched doctor 2>/dev/null || true) # it also fails because of other platforms
[[ $said != *"try xsched run --route preload"* ]] || route=(--route preload)

# value FILE NAME: the first one. In a report this is the whole program's.
value() { grep -m 1 -oP "\"$2\": ?\K[-+.0-9e]+" "$1"; }

if [[ $1 == demo ]]; then
  if ((${#route[@]} != 0)); then
    echo "no demo: the OpenCL loader of this system takes no layers"
    exit
  fi
  # As the demo runs it. It compiles its kernels the first time, for longer than the demo waits on a slow machine. Status 4: its time is over.
  hashcat --attack-mode=3 --hash-type=0 --force --opencl-device-types=1,2 --workload-profile=1 --potfile-disable --self-test-disable \
    --runtime=5 ffffffffffffffffffffffffffffffff '?a?a?a?a?a?a?a?a' >hashcat.log 2>&1 || (($? == 4)) || fail "hashcat: $(cat hashcat.log)"
  xsched demo --seconds 5 --json >demo.json
  median() { grep -oP "\"$1\":\[\K[^]]*" demo.json | tr ',' '\n' | sort -g | awk '{all[NR] = $1} END {print all[int((NR + 1) / 2)]}'; }
  echo "tasks of xsched demo, median: $(median alone_ms) ms alone, $(median native_ms) ms beside hashcat, $(median xsched_ms) ms under XSched"
  is_true "$(median xsched_ms) < $(median native_ms)" || fail "they are no shorter under XSched: $(cat demo.json)"
  exit
fi

for program in xsched xserver xserver-http; do
  "$program" --version
done
echo "xsched run ${route[*]}"
loops=$("$task" --calibrate)
xsched run "${route[@]}" --priority 0 --report=low_report.json -- \
  "$task" --continuous --kernel-ms 2 --loops-per-ms "$loops" --seconds 10 --json low.json &
low=$!
xsched run "${route[@]}" --priority 5 --report=urgent_report.json -- \
  "$task" --kernel-ms 2 --loops-per-ms "$loops" --seconds 10 --json urgent.json &
urgent=$!
wait "$low"
wait "$urgent"
held=$(value low_report.json held_seconds)
used=$(value urgent_report.json device_seconds)
echo "the urgent program used $used s of the device's time, and the other one was held for $held s"
# They do not begin and end at the same time.
is_true "$used > 0 && $held > $used / 2" || fail "the urgent program has not held the other one: $(cat low_report.json)"
grep -A 4 '"because_of"' low_report.json | grep -q '"priority": 5' || fail "it was held, but not because of the urgent program: $(cat low_report.json)"
is_true "$(value urgent_report.json held_seconds) < $held / 10" || fail "the urgent program was held, too: $(cat urgent_report.json)"
is_true "$(value low.json kernels) > 0" || fail "the other program did nothing: $(cat low.json)"
