# The project's commands; CMake does the work (CMakePresets.json).
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# The preset that test, tidy, bench and install use.
PRESET ?= release
PYTHON ?= python3
PLAN ?=
# How long each fuzzer runs, and after how long clang-tidy begins no further file (never).
FUZZ_SECONDS ?= 20
TIDY_SECONDS ?=
# For how long the soak test runs, and what decides what happens in it (at random, and printed).
SOAK_SECONDS ?= 600
SOAK_SEED ?=

.PHONY: all deps test test-rocm demo plan model ci check-format test-asan test-tsan test-aarch64 soak fuzz format tidy bench install clean
# Prerequisites in the order written; CMake builds in parallel.
.NOTPARALLEL:

all: build-release

deps:
	@scripts/install-deps.sh

build-%:
	cmake --preset $*
	cmake --build --preset $* --parallel $(JOBS) $(if $(TARGETS),--target $(TARGETS))

test: deps build-$(PRESET)
	ctest --preset $(PRESET)

# For AArch64: the in-process libraries, and those of their tests that need nothing else, in an emulator.
test-asan test-tsan test-aarch64: test-%: build-%
	ctest --preset $*

# Forty programs at a time, and all that can happen to them (tests/soak/soak.py).
soak: build-$(PRESET)
	python3 -B tests/soak/soak.py --bin build/$(PRESET)/bin --lib build/$(PRESET)/lib --seconds $(SOAK_SECONDS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

# HIP over the newest ROCm that Debian has, in a chroot (scripts/test-rocm.sh says what it needs).
test-rocm:
	scripts/test-rocm.sh

# What it needs, which is built in a third of the time.
demo: TARGETS = xsched xserver shimopencl xsched-latency-task
demo: deps build-release
	build/release/bin/xsched demo

# The test plan on this machine's GPU. PYTHON: the one that has PyTorch; PLAN: its options (--quick, --stage 3, …).
plan: build-release
	$(PYTHON) plan/run.py --bin build/release/bin $(PLAN)

# The models of the protocol (docs/model.md), and that each mutation of them is caught.
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

fuzz: build-fuzz
	build/fuzz/bin/fuzz_session -artifact_prefix=build/fuzz/ -max_total_time=$(FUZZ_SECONDS)
	build/fuzz/bin/fuzz_segment -artifact_prefix=build/fuzz/ -max_total_time=$(FUZZ_SECONDS)

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
	rm -rf build/release build/debug build/asan build/tsan build/aarch64 build/ci build/fuzz
