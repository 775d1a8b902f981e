#!/bin/bash
# Usage: test-deploy.sh BUILD [NAME…]
# Runs tests/deploy/NAME/run.sh with the folder of a build; without NAMEs, all of them. The first lines of each script say what it needs.
set -uo pipefail
build=$(realpath "$1") || exit
shift
cd "$(dirname "$0")/../tests/deploy" || exit
(($# != 0)) || set -- */
failed=()
for name in "${@%/}"; do
  echo "== $name"
  "./$name/run.sh" "$build" || failed+=("$name")
done
((${#failed[@]} == 0)) || {
  echo "test-deploy.sh: failed: ${failed[*]}" >&2
  exit 1
}
