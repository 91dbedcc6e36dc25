# Set-up, tests and demo. `make help` lists the targets. Everything made lies in .venv/, .jars/ and .demo/.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup kafka-jars browser lint audit test-fast test sweeps soak mutants planted foretold version-matrix small-worlds missed-epoch causes told-causes missing-evidence mutated-evidence damaged-artefacts faults hdfs object-store two-workers wheel injections month poison bench as-people-have-it lab live-fleet live-risk demo clean

# The Python that makes .venv; looked for before .venv/bin comes first in PATH.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# spark-submit finds its own Spark through the first python3 in PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
VENV := .venv/.complete
# The broker that the Kafka source is tested against. conf/kafka/ has more, for the laboratory.
KAFKA := 4.3.0
# `dependency:copy-dependencies` without Maven's one line per artefact.
COPY_JARS := mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -Dstyle.color=never

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV) .jars/.complete .jars/kafka-$(KAFKA)/.complete ## the virtual environment and the jars; a second run does nothing
	@echo "setup: all here"

kafka-jars: $(patsubst conf/kafka/%.xml,.jars/kafka-%/.complete,$(wildcard conf/kafka/*.xml)) ## the brokers of every version in conf/kafka/

# The stamps are written last: an interrupted set-up starts again.
$(VENV): pyproject.toml conf/constraints.txt
	@echo "setup: Python packages into .venv (the first time some minutes: pyspark is large)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: needs Python 3.11 or later")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off \
		--constraint conf/constraints.txt --editable '.[spark,quality,produce,dev]' \
		| sed -unE 's/^ *Collecting ([^ <>=!;[]+).*/  \1/p; s/^ *(Building wheel for [^ ]+).*started.*/  \1/p; s/^(Installing).*/  \1/p'
	@touch $@

.jars/.complete: conf/jars/pom.xml
	@echo "setup: Delta Lake and Kafka source jars into .jars"
	@mkdir -p .jars && rm -f .jars/*.jar
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars'
	@touch $@

.jars/hdfs/.complete: conf/hdfs/pom.xml
	@echo "setup: HDFS jars into .jars/hdfs"
	@rm -rf .jars/hdfs && mkdir -p .jars/hdfs
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/hdfs'
	@touch $@

.jars/s3/.complete: conf/s3/pom.xml
	@echo "setup: S3 jars and an S3-compatible server into .jars/s3"
	@rm -rf .jars/s3 && mkdir -p .jars/s3
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/s3'
	@$(PYTHON) -m venv .jars/s3/moto
	@.jars/s3/moto/bin/python -m pip install --disable-pip-version-check --quiet 'moto[server]==5.2.5'
	@touch $@

.jars/kafka-%/.complete: conf/kafka/%.xml
	@echo "setup: Kafka $* broker jars into .jars/kafka-$*"
	@rm -rf .jars/kafka-$* && mkdir -p .jars/kafka-$*
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/kafka-$*'
	@touch $@

.jars/zookeeper-%/.complete: conf/zookeeper.xml
	@echo "setup: ZooKeeper $* server jars into .jars/zookeeper-$*"
	@rm -rf .jars/zookeeper-$* && mkdir -p .jars/zookeeper-$*
	@$(COPY_JARS) --file $< -Dzookeeper=$* -DoutputDirectory='$(CURDIR)/.jars/zookeeper-$*'
	@touch $@

# The incident page is tested in a real browser: the distribution's package, as root or through sudo.
browser: ## Chromium and its driver, which the tests of the incident page drive; installed where missing
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi; \
	say="make browser: install chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"; \
	command -v apt-get >/dev/null || { echo "$$say" >&2; exit 1; }; \
	as_root=; if [ "$$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi; \
	echo "browser: installing chromium and chromium-driver from the distribution"; \
	$$as_root apt-get update -qq && $$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null \
		|| { echo "$$say" >&2; exit 1; }

lint: $(VENV) ## formatter, linter, types, import contracts
	$(BIN)/ruff format --check --output-format=concise
	$(BIN)/ruff check --output-format=concise
	$(BIN)/mypy replication $(wildcard jobs/*.py)
	$(BIN)/lint-imports --no-cache --no-logo

audit: $(VENV) ## dependencies: complete, as pinned, licences; ADVISORIES=dir holds them against advisories (OSV)
	$(BIN)/python -m tests.dependencies $(if $(ADVISORIES),--advisories $(ADVISORIES))

test-fast: lint ## lint, and the quick tests that start no Java
	$(BIN)/python -m pytest -n 2 -q -m "not spark and not kafka and not browser and not slow and not sweep"

test: browser setup lint audit ## everything: set-up, lint, all tests with Spark and a real Kafka broker
	$(BIN)/python -m pytest -n 2 -q --durations 25 -m "not spark and not kafka and not browser and not sweep"
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder --durations 25 -m "(spark or kafka or browser) and not sweep"

sweeps: setup ## faults, maintenance, poison through Spark, changed evidence of every capture: longer than `make test` should be
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m sweep

lab: setup kafka-jars ## real clusters of every version with real faults; SEED=n, KAFKA_VERSION=v and KEEP=dir narrow and keep
	$(BIN)/python -m tests.kafka_lab $(if $(SEED),--seed $(SEED)) $(if $(KAFKA_VERSION),--kafka $(KAFKA_VERSION)) $(if $(KEEP),--keep $(KEEP))

.PHONY: zookeepers
ZOOKEEPERS := 3.6.4 3.7.2 3.8.4 3.9.3
zookeepers: setup .jars/kafka-1.1.1/.complete .jars/kafka-2.8.2/.complete $(foreach v,$(ZOOKEEPERS),.jars/zookeeper-$(v)/.complete) ## a loss under each ZooKeeper release from 3.4 to 3.9, judged by all evidence, and by its directory and log directories alone; KEEP=dir
	$(BIN)/python -m tests.kafka_lab.zookeepers $(if $(KEEP),--keep $(KEEP))

SCHEDULES := 10000
STORIES := 2000
soak: $(VENV) ## random schedules, machine against naive model: make soak SCHEDULES=10000
	$(BIN)/python -m tests.protocol.schedules $(SCHEDULES)

mutants: $(VENV) ## every condition of the rules changed in turn: who catches it
	$(BIN)/python -m tests.protocol.mutants

planted: $(VENV) ## steps of traces changed by one: those that no timing explains are found
	$(BIN)/python -m tests.protocol.planted 300

TRACES := $(wildcard tests/incidents/*__trace)
foretold: $(VENV) ## what the rules foretold of traced evidence, and each change that they did not; TRACES="folder.."
	$(BIN)/python -m tests.protocol.foretold $(TRACES)

version-matrix: $(VENV) ## traced evidence judged by the rules of every release; TRACES="folder.."
	$(BIN)/python -m tests.protocol.version_matrix $(TRACES)

small-worlds: $(VENV) ## every schedule of small worlds: which invariant each generation can break
	$(BIN)/python -m tests.protocol.small_worlds

missed-epoch: $(VENV) ## a leader that missed an epoch, and its two remedies, in every KRaft release
	$(BIN)/python -m tests.protocol.remedies

causes: $(VENV) ## random losses told again without one step each: is the ledger's cause that step; make causes STORIES=2000
	$(BIN)/python -m tests.protocol.removed_steps $(STORIES)

told-causes: $(VENV) ## random losses as default log levels tell them, artefacts withheld: is each cause and contract; make told-causes STORIES=600
	$(BIN)/python -m tests.protocol.told_causes $(STORIES)

missing-evidence: $(VENV) ## random stories, evidence withheld: is the true history always admitted. SCHEDULES=n
	$(BIN)/python -m tests.protocol.histories.refinement $(SCHEDULES) --rests 4

as-people-have-it: $(VENV) ## captured incidents packed, merged, in other zones: the same answer
	$(BIN)/python -m pytest -n 2 -q tests/test_as_people_have_it.py tests/test_layouts.py

mutated-evidence: $(VENV) ## captured incidents handed over twice, unreadable, spliced: is an answer ever wrong
	$(BIN)/python -m tests.mutated_evidence

damaged-artefacts: $(VENV) ## each file of captured incidents cut, torn, turned, doubled, of another time: does an answer turn. SHARE=n, PART=k: every n-th file from the k-th on
	$(BIN)/python -m tests.damaged_artefacts --share $(or $(SHARE),1) --part $(or $(PART),0)

faults: setup ## faults at a stream: tables as undisturbed, or a refusal; real kills at last. SEED=n, CYCLES=n
	$(BIN)/python -m tests.spark.faults --seed $(or $(SEED),0)
	$(BIN)/python -m tests.spark.kill_cycles --seed $(or $(SEED),0) --cycles $(or $(CYCLES),20)
	$(BIN)/python -m tests.spark.kill_executors --seed $(or $(SEED),0) --kills $(or $(KILLS),6)

hdfs: setup .jars/hdfs/.complete ## the jobs on a real HDFS by workers that share no disk, an executor killed: local mode's tables (root: mounts)
	$(BIN)/python -m tests.spark.on_hdfs

object-store: setup .jars/s3/.complete ## as hdfs, on an S3-compatible server (moto), one driver at a time (root: mounts; downloads 700 MB)
	$(BIN)/python -m tests.spark.on_s3

two-workers: setup .jars/hdfs/.complete ## what a second worker saves at replay and import on HDFS, by CPU seconds and by the clock (root: mounts)
	$(BIN)/python -m tests.spark.two_workers

month: setup ## thousands of micro-batches in one job with maintenance beside: CPU, files, memory. MINUTES=n
	$(BIN)/python -m benchmarks.month --minutes $(or $(MINUTES),1440)

poison: $(VENV) ## every kind of event by extreme values of every field: every host gives one answer
	$(BIN)/python -m tests.spark.poison

live-fleet: setup kafka-jars ## losses on real brokers with digest.py beside them, shipped by a real rsyslog into the running stream (needs rsyslog, rsyslog-kafka). KAFKA_VERSION=v, ROUNDS=n
	$(BIN)/python -m tests.spark.live_fleet $(if $(KAFKA_VERSION),--kafka $(KAFKA_VERSION)) $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: live-campaign danger-forks live-faults
live-campaign: setup ## taped laboratory runs (RUNS=dir: python -m tests.kafka_lab --chaos or --healthy, --tape --keep dir) shipped live again: was each loss told before, beside the usual alerts
	$(BIN)/python -m tests.spark.live_campaign $(RUNS)

.PHONY: live-bases
live-bases: setup ## taped laboratory runs (RUNS=dir: python -m tests.kafka_lab --chaos --calm 4 --tape --keep dir) shipped with bases and without: the same verdicts
	$(BIN)/python -m tests.spark.live_bases $(RUNS)

live-faults: setup ## shipper, topic's broker and stream killed, all sent twice (needs rsyslog, rsyslog-kafka): the tables of an import, each alert once. SEED=n
	$(BIN)/python -m tests.spark.live_faults --seed $(or $(SEED),1)

danger-forks: setup kafka-jars ## what a row of at_risk names is made to fail on real brokers: are the named records lost. KAFKA_VERSION=v
	$(BIN)/python -m tests.spark.danger_forks $(if $(KAFKA_VERSION),--kafka $(KAFKA_VERSION))

live-risk: setup kafka-jars ## dangers before the loss: real brokers with digest.py beside them, joined as the stream does
	$(BIN)/python -m tests.spark.risk_fleet

wheel: $(VENV) ## the wheel in an empty environment, from another folder: the tool and each of its jobs
	$(BIN)/python -m tests.wheel_jobs

injections: setup ## each defence against what an enemy writes taken out in turn: is its test red without it
	$(BIN)/python -m tests.injections

bench: setup ## every benchmark beside its yardstick, in turn, with spread: benchmarks/RESULTS.md. ROUNDS=n, ONLY=name
	$(BIN)/python -m benchmarks.all --rounds $(or $(ROUNDS),3) $(if $(ONLY),--only $(ONLY))

demo: setup ## a real incident through the Spark jobs into Delta tables, and the answer by SQL
	$(BIN)/python -m replication.spark.demo

clean: ## remove what set-up and demo made
	rm -rf .venv .jars .demo
