#!/bin/bash
# Run by test-archive.sh in a clean system, as a user in whose home the archive is unpacked: an urgent program beside one that always has
# work, by the way to reach them that the doctor names for this system.
set -euo pipefail
cd
PATH=$(echo ~/xsched-*/bin):$PATH
task=$(find ~/xsched-*/ -name xsched-latency-task -type f)
for program in xsched xserver xserver-http; do
  "$program" --version
done

route=()
# The OpenCL loader of Debian 11 takes no layers.
said=$(xsched doctor 2>/dev/null || true) # it also fails because of other platforms
[[ $said != *"try xsched run --route preload"* ]] || route=(--route preload)
echo "xsched run ${route[*]}"
loops=$("$task" --calibrate)
xsched run "${route[@]}" --priority 0 -- "$task" --continuous --kernel-ms 2 --loops-per-ms "$loops" --seconds 10 --json low.json &
xsched run "${route[@]}" --priority 5 -- "$task" --kernel-ms 2 --loops-per-ms "$loops" --seconds 10 --json urgent.json &
for ((i = 0; i < 100; ++i)); do
  if xsched list --json | grep -q '"priority": *5' && xsched list --json | grep -q '"priority": *0'; then break; fi
  sleep 0.1
done
xsched list
((i < 100)) || {
  echo "both programs are not scheduled after 10 s" >&2
  exit 1
}
wait
[[ -s low.json && -s urgent.json ]]
