#!/bin/bash
# Usage: run.sh BUILD
# The agent for Kubernetes against a fake kubelet and a fake API server (BUILD's own tests, which CI runs as well), and the manifests, by
# Helm's own library, kubectl and Kubernetes' schemas. The library and the schemas come from PyPI, into build/kubernetes; that is why the
# manifests are not a part of CI (100 MB).
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../../.."
python=build/kubernetes/bin/python
if ! "$python" -c "import helm_python, kubernetes_validate, yaml" 2>/dev/null; then
  python3 -m venv build/kubernetes
  build/kubernetes/bin/pip install --quiet "helm-python-sdk==0.2.2" "kubernetes-validate==1.37.0" pyyaml
fi
"$python" -B tests/deploy/kubernetes/manifests.py "$build/bin/xsched"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R Kubernetes
