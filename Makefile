# The project's commands; CMake does the work (CMakePresets.json).
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# The preset that test, tidy, bench and install use.
PRESET ?= release
PYTHON ?= python3
PLAN ?=
# The processor that archives and wheels are made for: x86_64 or aarch64.
MACHINE ?= $(shell uname -m)
# For how many seconds each fuzzer runs, and after how many clang-tidy begins no further file (unset: no limit).
FUZZ_SECONDS ?= 20
TIDY_SECONDS ?=
# For how many seconds the soak test runs, and its seed (unset: random; the test prints it).
SOAK_SECONDS ?= 600
SOAK_SEED ?=
# What is built twice: archive, packages (unset: both).
REPRODUCIBLE ?=

.PHONY: all deps aarch64-system test test-rocm test-pages demo plan portable archive wheel test-archive system-packages packages test-packages test-reproducible test-deploy model ci check-format thread-safety test-locks test-asan test-tsan test-aarch64 soak fuzz fuzz-coverage fuzz-keep format tidy bench install clean
# Make builds prerequisites in the written order; CMake builds in parallel.
.NOTPARALLEL:

all: build-release

deps:
	@scripts/install-deps.sh

build-%:
	cmake --preset $*
	cmake --build --preset $* --parallel $(JOBS) $(if $(TARGETS),--target $(TARGETS))

test: deps build-$(PRESET)
	ctest --preset $(PRESET)

# test-aarch64: the in-process libraries, in an emulator: their unit tests, and OpenCL over PoCL. test-locks: the shims preloaded, with the
# order of locks checked (src/base/lock_order.inc): sanitizers, which check it as well, cannot be preloaded.
test-asan test-tsan test-aarch64 test-locks: test-%: build-%
	ctest --preset $*

# Libraries for AArch64, which the build and the tests need.
build-aarch64: aarch64-system
aarch64-system:
	scripts/fetch-aarch64-system.sh

# Forty programs at a time that are killed, stopped and frozen (tests/soak/soak.py).
soak: build-$(PRESET)
	python3 -B tests/soak/soak.py --bin build/$(PRESET)/bin --lib build/$(PRESET)/lib --seconds $(SOAK_SECONDS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

# HIP, and real programs, over all of AMD's runtimes that are available. scripts/test-rocm.sh lists them, and what it needs.
test-rocm:
	PYTHON="$(PYTHON)" scripts/test-rocm.sh

# Only these targets, which build in a third of the time.
demo: TARGETS = xsched xserver shimopencl xsched-latency-task
demo: deps build-release
	build/release/bin/xsched demo

# The test plan on this machine's GPU. PYTHON: the one that has PyTorch; PLAN: its options (--quick, --stage 3, …).
plan: build-release
	$(PYTHON) plan/run.py --bin build/release/bin $(PLAN)

# The pages of simulate, demo, plan and the benchmarks, opened in a browser (Debian's package chromium, which CI does without: it is
# larger than all other packages together). Pictures of them, to be looked at, are in build/release/pages.
test-pages: build-release
	python3 -B tests/pages/pages_test.py --xsched build/release/bin/xsched --keep build/release/pages
	python3 -B tests/pages/browser_test.py build/release/pages/*.html

# For every Linux with glibc 2.17 or later (docs/install.md): programs and libraries that need no other library.
portable:
	scripts/install-deps.sh --packages
	scripts/fetch-cuda-headers.sh
	scripts/portable-toolchain.sh $(MACHINE)
	$(MAKE) build-portable-$(MACHINE)

# One file that runs where it is unpacked.
archive: portable
	scripts/archive.sh build/portable-$(MACHINE)

# The Python package with the programs and libraries in it, for `pip install`.
wheel: portable
	scripts/wheel.sh build/portable-$(MACHINE)

# Both, in clean systems, from glibc 2.31 on. As root.
test-archive: archive wheel
	scripts/test-archive.sh build/portable-$(MACHINE)/xsched-*-linux-$(MACHINE).tar.xz build/portable-$(MACHINE)/xsched-*_$(MACHINE).whl

# Debian's and RPM packages (docs/install.md), with what is committed.
system-packages:
	scripts/install-deps.sh --packages
	scripts/packages.sh

# All that is made of one commit, but the container images, which are built from the packages.
packages: system-packages archive wheel

# They are installed, upgraded and removed in clean systems, while programs run. As root.
test-packages:
	scripts/install-deps.sh --packages
	scripts/test-packages.sh

# The same commit gives the same bytes: builds archive, wheel and packages twice, in different folders.
test-reproducible:
	scripts/install-deps.sh --packages
	scripts/test-reproducible.sh $(REPRODUCIBLE)

# Ways to place programs on machines (docs/deploy), each with the real thing: tests/deploy/*/run.sh. They need root, and some of them
# Debian's mirror. One that fails does not keep the others from running.
test-deploy: build-$(PRESET)
	scripts/install-deps.sh --deploy
	scripts/test-deploy.sh build/$(PRESET)

# Checks the models of the protocol, and that the checks find each mutation (docs/model.md).
model:
	scripts/model.py -j $(JOBS)

# Everything that a change must pass.
ci:
	@.ci/run

check-format:
	scripts/format.sh --check

format:
	scripts/format.sh

tidy: build-$(PRESET)
	scripts/tidy.sh -p build/$(PRESET) -j $(JOBS) $(if $(TIDY_SECONDS),-l $(TIDY_SECONDS))

# What each lock guards is used with it held: clang's analysis (src/base/thread_annotations.h).
thread-safety: build-$(PRESET)
	scripts/thread_safety.py -p build/$(PRESET) -j $(JOBS)

fuzz: build-fuzz
	scripts/fuzz.py run --seconds $(FUZZ_SECONDS)

# Which lines the inputs reach that are kept in tests/fuzz/corpus. Fails below 85 % of a part.
fuzz-coverage: build-fuzz
	scripts/fuzz.py coverage

# Keeps in tests/fuzz/corpus the smallest set of inputs that reaches as much.
fuzz-keep: build-fuzz
	scripts/fuzz.py keep

bench: build-$(PRESET)
	python3 bench/keep_awake.py build/$(PRESET)/bin/server_bench
	build/$(PRESET)/bin/intercept_bench
	@# Where CUDA or HIP is built.
	[ ! -x build/$(PRESET)/bin/cuda_launch_bench ] || build/$(PRESET)/bin/cuda_launch_bench
	[ ! -x build/$(PRESET)/bin/hip_launch_bench ] || build/$(PRESET)/bin/hip_launch_bench
	python3 bench/opencl/latency.py --bin build/$(PRESET)/bin

install: build-$(PRESET)
	cmake --install build/$(PRESET) --prefix $(PREFIX)

clean:
	rm -rf build/release build/debug build/locks build/asan build/tsan build/aarch64 build/ci build/fuzz build/portable build/portable-*
