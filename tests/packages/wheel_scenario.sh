#!/bin/bash
# Run by test-archive.sh in a clean system with Python, as a user in whose home are a wheel and tests of the Python package (in tests/): pip
# installs it without any index, and it works.
set -euo pipefail
cd
python3 -m venv venv
venv/bin/pip --disable-pip-version-check install --quiet --no-index ./xsched-*.whl
PATH=~/venv/bin:$PATH
python --version
xsched --version
said=$(python -m xsched.doctor || true) # it also fails because of other platforms
[[ $said == *"$HOME/venv/"*"/libshimopencl.so loads"* && $said =~ OpenCL\ [^$'\n']*(is scheduled|try xsched run --route preload) ]] || {
  echo "wheel_scenario.sh: the doctor does not find that OpenCL is scheduled: $said" >&2
  exit 1
}
echo "${BASH_REMATCH[0]}"
modules=(test_errors test_opencl)
# The others are written for newer Pythons than the package itself.
! python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || modules+=(test_hints test_library)
for module in "${modules[@]}"; do
  echo "$module"
  python -B tests/package_tests.py ~/tests "$module"
done
