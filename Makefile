# SPDX-License-Identifier: Apache-2.0
# The door to the project: every target installs what it needs (tools/setup), builds and works. meson does the building.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
FUZZ ?= *
FUZZ_SECONDS ?= 60
TORTURE_SECONDS ?= 3600
SOAK_SECONDS ?= 3600

export BUILD
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

# Builds a directory; silent when there is nothing to do.
ninja = ninja --quiet -C $(1) | sed '/^ninja: no work to do/d'

.PHONY: help
help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## build/tidemark and the library
	@tools/setup build
	@tools/configure plain
	@$(call ninja,$(BUILD))

.PHONY: run
run: build ## build, then play the demo (examples/demo), at a terminal with the server in the end; or: make run ARGS="sessions list"
	@tools/setup run
	@$(if $(ARGS),$(BUILD)/tidemark $(ARGS),TIDEMARK=$(BUILD)/tidemark $(BUILD)/examples/tidemark-demo)

.PHONY: check
check: ## the tests that matter most, within two minutes: while you work
	@tools/setup test
	@tools/configure plain
	@tools/run-tests $(BUILD):check

.PHONY: test
test: ## every test; again under ASan and UBSan, and those of threads under TSan; each fuzzer for some seconds
	@tools/setup test
	@tools/configure plain
	@tools/configure asan
	@tools/configure tsan
	@tools/configure fuzz
	@tools/run-tests $(BUILD) $(BUILD)/asan:unit,store,session,agent,graph,sim $(BUILD)/tsan:threads $(BUILD)/fuzz

.PHONY: test-asan
test-asan: ## all tests under AddressSanitizer and UBSan
	@tools/setup test
	@tools/configure asan
	@tools/run-tests $(BUILD)/asan

.PHONY: test-tsan
test-tsan: ## all tests under ThreadSanitizer
	@tools/setup test
	@tools/configure tsan
	@tools/run-tests $(BUILD)/tsan

.PHONY: fuzz
fuzz: ## run the fuzzers: make fuzz FUZZ=json FUZZ_SECONDS=600
	@tools/setup fuzz
	@tools/configure fuzz
	@$(call ninja,$(BUILD)/fuzz)
	@tools/run-fuzz $(FUZZ_SECONDS) $$(find $(BUILD)/fuzz/fuzz -maxdepth 1 -type f -perm -u+x -name 'fuzz-$(FUZZ)')

.PHONY: torture
torture: ## the long proof: simulation on all cores for TORTURE_SECONDS
	@tools/setup test
	@tools/configure plain
	@$(call ninja,$(BUILD))
	@tools/torture $(BUILD) $(TORTURE_SECONDS)

.PHONY: soak
soak: ## the server under use for SOAK_SECONDS: its memory and its descriptors stay flat
	@tools/setup test
	@tools/configure plain
	@$(call ninja,$(BUILD))
	@TIDE_BIN="$(abspath $(BUILD))/tidemark" TIDEMARK_ORIGIN_KEY='a key for tests alone' python3 tests/server/soak.py $(SOAK_SECONDS)

.PHONY: bench
bench: build ## measure: make bench ARGS="append"
	@tools/setup bench
	@TIDEMARK=$(BUILD)/tidemark $(BUILD)/bench/tidemark-bench $(ARGS)

.PHONY: bench-console
bench-console: build ## measure the console in Chromium: make bench-console ARGS=--quick
	@tools/setup test
	@TIDE_SOURCE='$(CURDIR)' TIDE_BUILD='$(abspath $(BUILD))' TIDE_BIN='$(abspath $(BUILD))/tidemark' tools/bench-console $(ARGS)

.PHONY: bench-peers
bench-peers: build ## measure beside Restate, DBOS, OpenWorkflow and LangGraph: make bench-peers ARGS=--quick
	@tools/setup peers
	@node=$$(tools/setup-peers $(BUILD)/peers) && NODE_NO_WARNINGS=1 "$$node" $(BUILD)/peers/run.js '$(abspath $(BUILD))' $(ARGS)

SHOTS ?= docs/console
.PHONY: console-shots
console-shots: build ## pictures of the console for docs/CONSOLE.md, made by its tests
	@tools/setup test
	@mkdir -p '$(SHOTS)'
	@TIDE_SOURCE='$(CURDIR)' TIDE_BUILD='$(abspath $(BUILD))' TIDE_BIN='$(abspath $(BUILD))/tidemark' CONSOLE_SHOTS='$(abspath $(SHOTS))' tests/console/browser.sh sqlite

.PHONY: lint
lint: ## layers, sizes, format, warnings of a second compiler, static analysis, scripts
	@tools/setup lint
	@tools/lint

.PHONY: format
format: ## bring the C files into the house format
	@tools/setup lint
	@tools/c-files | xargs clang-format -i

.PHONY: install
install: build ## install below PREFIX (/usr/local), staged into DESTDIR
	@meson configure $(BUILD) -Dprefix='$(abspath $(PREFIX))'
	@meson install -C $(BUILD) --destdir '$(DESTDIR)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi

.PHONY: offers
offers: ## every command that sessions and errors of the tests of the command line offer, tried in a copy of its store
	@tools/setup test
	@tools/configure plain
	@$(call ninja,$(BUILD))
	@TIDE_SOURCE="$(CURDIR)" TIDE_BUILD="$(abspath $(BUILD))" TIDE_BIN="$(abspath $(BUILD))/tidemark" TIDEMARK_ORIGIN_KEY='a key for tests alone' tests/cli/offers.sh

.PHONY: fresh
fresh: ## make run and make test of the committed tree on a bare Debian
	@tools/setup fresh
	@tools/fresh-check

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf $(BUILD)
