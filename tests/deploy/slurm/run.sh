#!/bin/bash
# Usage: run.sh BUILD [TEST…]
# Jobs of a real Slurm with XSched's plugin: a controller and two nodes in a temporary folder, which end with this script. The load is
# OpenCL on the CPU (PoCL). BUILD: a build's folder. Needs slurmctld, slurmd and slurm-client; one test needs
# root, and one slurmdbd and MariaDB, which run in that folder, too.
set -euo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/deploy/needs.sh
. tests/deploy/needs.sh
PATH=$PATH:/usr/sbin needs_programs --deploy slurmctld slurmd srun slurmdbd mariadbd
exec python3 -B tests/deploy/slurm/slurm_jobs.py --bin "$build/bin" --lib "$build/lib" "$@"
