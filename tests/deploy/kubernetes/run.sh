#!/bin/bash
# Usage: run.sh BUILD
# The agent for Kubernetes against a fake kubelet and a fake API server, and the manifests by Kubernetes' schemas (BUILD's own tests, which CI
# runs as well); the chart, by Helm's own library, and the Kustomize folders, by kubectl; and the image, built and run by Podman. The library
# comes from PyPI, into build/kubernetes (75 MB), and the image needs root, Debian's mirror and packages of this commit: that is why they are
# not a part of CI.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/deploy/needs.sh
. tests/deploy/needs.sh
needs_root "the image"
needs_programs "--packages and --deploy" podman runc mmdebstrap dh
python=build/kubernetes/bin/python
scripts/fetch-kubernetes-schemas.sh
"$python" -c "import helm_python" 2>/dev/null || build/kubernetes/bin/pip install --quiet "helm-python-sdk==0.2.2"
"$python" -B tests/deploy/kubernetes/manifests.py "$build/bin/xsched"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R Kubernetes
tests/deploy/kubernetes/image.sh "$(clean_system bookworm)" "$build"
