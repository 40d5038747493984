# The commands of this repository. .ci/run runs these same targets in order.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN       := $(CURDIR)/.bin
GOLANGCI  := $(BIN)/golangci-lint
TAGS      := keycloak instruments
FUZZTIME  ?= 5s
BENCH     ?= .

.PHONY: help tools fmt fmt-check vet lint tidy-check build readme cross test race profiles property keycloak mcp fuzz-short fuzz-long tagged \
	bench benchmarks cover vuln words ci

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools:
	@.ci/tools golangci-lint

fmt: tools ## Format the code (gofumpt)
	$(GOLANGCI) fmt

fmt-check: tools ## Fail when the code is not formatted
	@unformatted=$$(gofmt -l -s $$(find . -name '*.go' -not -path './.*')); \
	[[ -z $$unformatted ]] || { echo "gofmt -s would change:"; echo "$$unformatted"; exit 1; }
	$(GOLANGCI) fmt --diff

vet: ## go vet
	go vet ./...

lint: tools ## Run the chosen linters
	$(GOLANGCI) run

tidy-check: ## Fail when go.mod or go.sum is not tidy
	go mod tidy -diff

build: ## Build everything, and the static binary into .bin
	go build ./...
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/zerto-rewind ./adapters/cmd/zerto-rewind

readme: ## Run the commands README.md tells its readers to run
	@.ci/readme README.md

cross: ## Compile and vet for Windows and macOS
	GOOS=windows CGO_ENABLED=0 go build ./...
	GOOS=windows CGO_ENABLED=0 go vet ./...
	GOOS=darwin CGO_ENABLED=0 go build ./...
	GOOS=darwin CGO_ENABLED=0 go vet ./...

test: ## Run the tests
	go test -shuffle=on ./...

race: ## Run the tests under the race detector; a skip not in .ci/allowed-skips fails
	@.ci/race

profiles: ## Run the loop's suite against the simulator's realistic and hostile profiles
	@.ci/profiles

property: ## Make 20,000 random guarded changes under random faults and cancellations
	GOGC=400 go test -run WhateverHappens -parallel 6 -timeout 15m ./rewind -steps 20000

keycloak: ## Test the client against a real Keycloak, fetched with Maven
	@.ci/keycloak

mcp: ## Hold the MCP server and the proxy to instruments of the protocol's own authors, fetched with npm
	@.ci/mcp

fuzz-long: ## Fuzz every target for ten minutes
	@FUZZTIME=600s BUDGET=1000000 .ci/fuzz

fuzz-short: ## Fuzz every target for FUZZTIME (default 5s)
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

tagged: ## Vet the files behind build tags, which ./... leaves out
	@for tag in $(TAGS); do echo "go vet -tags $$tag ./..."; go vet -tags "$$tag" ./...; done

bench: ## Run the benchmarks matching BENCH (default all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

benchmarks: ## Measure the loop and write rewind/BENCHMARKS.md
	@.ci/benchmarks

cover: ## Test coverage, total and by function
	@mkdir -p $(BIN)
	go test -coverpkg=./... -coverprofile=$(BIN)/cover.out ./...
	go tool cover -func=$(BIN)/cover.out

vuln: ## Look for known vulnerabilities, where their database is reachable
	@.ci/vuln

words: ## Fail on words that do not belong in tracked files
	@.ci/words

ci: ## Everything above that can fail, in order
	@bash .ci/run
