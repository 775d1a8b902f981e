#!/bin/bash
# Usage: fetch-kubernetes-schemas.sh
# Puts Kubernetes' schemas, and Python's packages that check by them, into build/kubernetes: 24 MB of PyPI. If this fails, the test of the
# manifests is skipped, which is not an error.
set -euo pipefail
cd "$(dirname "$0")/.."

place=build/kubernetes
if "$place/bin/python" -c "import kubernetes_validate, yaml" 2>/dev/null; then
  exit 0
fi
echo "fetching Kubernetes' schemas"
if ! { python3 -m venv "$place" && "$place/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 "kubernetes-validate==1.37.0" pyyaml; }; then
  echo "Kubernetes' schemas cannot be fetched: the test that needs them is skipped." >&2
fi
