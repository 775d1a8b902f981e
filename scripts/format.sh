#!/bin/bash
# Formats our C and C++. With --check, only prints what would change, and fails if anything would.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
if [[ ${1:-} == --check ]]; then
  mode=(--dry-run --Werror)
fi
# The C headers are laid out by hand.
git ls-files -z -- '*.cc' '*.h' '*.c' ':!include/xsched' | xargs -0 --no-run-if-empty clang-format "${mode[@]}"
