#!/bin/bash
# Usage: library_path.sh FOLDER PROGRAM SHIM
# PROGRAM with FOLDER's libOpenCL.so.1 says in one line that it is not scheduled, and does what it does without; with SHIM it says
# nothing.
set -euo pipefail
folder=$1
program=$2
shim=$3
unset LD_PRELOAD OPENCL_LAYERS XSCHED_SCHEDULER
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

LD_LIBRARY_PATH=$folder ldd "$program" | grep -F "$folder/libOpenCL.so.1"
"$program" >/dev/null
LD_LIBRARY_PATH=$folder "$program" >/dev/null 2>"$errors"
[[ ! -s $errors ]] # it does not ask to be scheduled

export XSCHED_AUTO_XQUEUE=ON
LD_LIBRARY_PATH=$folder "$program" >/dev/null 2>"$errors"
cat "$errors"
[[ $(wc -l <"$errors") == 1 ]]
grep 'xsched run' "$errors"
LD_LIBRARY_PATH=$folder OPENCL_LAYERS=$shim "$program" >/dev/null 2>"$errors"
[[ ! -s $errors ]]
