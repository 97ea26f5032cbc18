# Thin: every real rule is in CMake or in a script of tools/. `make help` lists what there is.
PRESET ?= release
NPROC := $(shell nproc)
BUILD := build/$(PRESET)
# A terminal shows ninja's progress on one line; a CI log would get a line a file.
QUIET := $(if $(CI),-- --quiet)
PROMPT ?= a lighthouse on a cliff at dusk, waves below, wind and gulls
export PROMPT
FUZZ_SECONDS ?= 300

.DEFAULT_GOAL := help
.PHONY: help setup setup-check build demo test check tidy bench format asan cuda fuzz clean

help:
	@echo 'make setup    install the Debian packages that are missing'
	@echo 'make demo     build, then make out/demo.mp4 and out/demo.png'
	@echo 'make test     build, then run every test'
	@echo 'make check    layout, floors, headers, static analysis, device code'
	@echo 'make bench    build and run the benchmarks'
	@echo 'make asan     every test under the address and undefined-behaviour sanitizers'
	@echo 'make cuda     build and test with device code (nvcc 13)'
	@echo 'make fuzz     each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds'
	@echo 'make tidy     clang-tidy over every host file, tests too'
	@echo 'make format   lay out every source file'
	@echo 'PRESET=$(PRESET) chooses the build: release, dev, asan, cuda'

setup:
	@tools/setup.sh build

setup-check:
	@tools/setup.sh build check

build: setup
	cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	cmake --build --preset $(PRESET) --parallel $(NPROC) $(QUIET)
	cmake --install $(BUILD) --prefix build >/dev/null

demo: build
	mkdir -p out
	build/h3rt generate --model models/h3-tiny --prompt "$$PROMPT" --out out/demo.mp4 --sheet out/demo.png

test: build
	@tools/run_tests.sh $(BUILD) $(NPROC)

check: setup-check
	@tools/check.sh

tidy: setup-check
	cmake --preset $(PRESET) --log-level=WARNING >/dev/null
	tools/check_compile tidy --tests --build $(BUILD)

bench: setup
	cmake --preset release --log-level=WARNING >/dev/null
	cmake --build --preset release --parallel $(NPROC) --target all h3rt_benchmarks $(QUIET)
	cmake --install build/release --prefix build >/dev/null
	@tools/run_benchmarks.sh build/release

format: setup-check
	@tools/list_sources | xargs -0 -r clang-format-14 -i

asan:
	$(MAKE) test PRESET=asan

cuda:
	$(MAKE) test PRESET=cuda

fuzz: setup-check
	cmake --preset fuzz --log-level=WARNING >/dev/null
	cmake --build --preset fuzz --parallel $(NPROC) --target h3rt_fuzzers
	@tools/run_fuzzers.sh build/fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build out
