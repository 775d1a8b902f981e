# The project's commands; CMake does the work (CMakePresets.json).
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: all deps test demo ci check-format test-asan test-tsan format tidy bench install clean
# Prerequisites in the order written; CMake builds in parallel.
.NOTPARALLEL:

all: build-release

deps:
	@scripts/install-deps.sh

build-%:
	cmake --preset $*
	cmake --build --preset $* --parallel $(JOBS)

test: deps build-release
	ctest --preset release

test-asan test-tsan: test-%: build-%
	ctest --preset $*

demo: deps build-release
	build/release/bin/xsched demo

ci: deps check-format build-ci
	ctest --preset ci
	@$(MAKE) --no-print-directory test-asan test-tsan

check-format:
	scripts/format.sh --check

format:
	scripts/format.sh

tidy: build-ci
	git ls-files -z 'src/*.cc' | xargs -0 -n 1 -P $(JOBS) clang-tidy --quiet -p build/ci

bench: build-release
	cmake --build --preset release --target bench

install: build-release
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build/release build/debug build/asan build/tsan build/ci
