# make help tells what there is. Every target sets up what it needs by itself, once.

.DEFAULT_GOAL := help
.PHONY: help setup lock check test lint types unit verify replay mutants stacks e2e up down invoke logs synth diff deploy destroy smoke \
	dlq redrive audit trace pause resume forget discard recover clean

PYTHON_PACKAGES := .venv/.done
NODE_PACKAGES := node_modules/.done
WHEELS := .cache/wheels/.done
READY := $(PYTHON_PACKAGES) $(NODE_PACKAGES)
SOURCES := $(wildcard app.py) stacks functions shared tests tools

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
CDK := .venv/bin/node node_modules/aws-cdk/bin/cdk
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CDK_DISABLE_CLI_TELEMETRY := true

# Stops where a variable is not given: $(call need,ORDER,ord_1)
need = $(if $($(1)),,$(error make $@ needs $(1)=$(2)))

help: ## this list
	@awk -F ':.*## ' '/^## /{ printf "\n%s\n", substr($$0, 4) } /^[a-z0-9-]+:.*## /{ printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n'

## On the laptop: a local AWS, no account, no Docker

up: $(READY) ## start it, deploy the app, leave it running (PORT=4566; without, a free one)
	@$(PY) -m tools.local up $(if $(PORT),--port $(PORT))

down: $(PYTHON_PACKAGES) ## end it
	@$(PY) -m tools.local down

invoke: $(PYTHON_PACKAGES) ## run a function with its sample event on what `make up` started (FUNCTION=order)
	@$(PY) -m tools.local invoke $(FUNCTION)

logs: $(PYTHON_PACKAGES) ## print what a function logged there (FUNCTION=order)
	@$(PY) -m tools.local logs $(FUNCTION)

## Checks

check: $(PYTHON_PACKAGES) ## the inner loop, under a minute: ruff, import rules, mypy and unit tests of shared/ and functions/
	.venv/bin/ruff check . && .venv/bin/ruff format --check --quiet .
	.venv/bin/lint-imports --no-logo
	.venv/bin/mypy shared functions
	$(PYTEST) -n 2 --dist worksteal $(addprefix tests/unit/,idempotency orders api order payment email relay sweep)

test: lint types unit stacks e2e ## everything a change must pass

lint: $(READY) ## ruff, its formatter, import rules, and GitHub's own check of the workflow
	.venv/bin/ruff check . && .venv/bin/ruff format --check --quiet .
	.venv/bin/lint-imports --no-logo
	.venv/bin/node tools/workflows.mjs .github/workflows/*.yml

types: $(PYTHON_PACKAGES) ## mypy --strict
	.venv/bin/mypy $(SOURCES)

unit: $(PYTHON_PACKAGES) ## the core, the functions, every schedule with one fault: no AWS, minutes
	$(PYTEST) -n 2 --dist worksteal tests/schedules tests/unit

verify: $(PYTHON_PACKAGES) ## every schedule with two faults, and long random walks (minutes; DEEP=1 with two copies of a message: hours)
	@$(PY) -m tests.schedules verify $(if $(DEEP),--deep)

replay: $(PYTHON_PACKAGES) ## show a schedule call by call (SCHEDULE=payment:pAAA?pBA, as a failing test prints it)
	$(call need,SCHEDULE,'payment:pAAA?pBA' (in quotes))@$(PY) -m tests.schedules replay '$(SCHEDULE)'

mutants: $(PYTHON_PACKAGES) ## break the code in named ways; each must be noticed (minutes)
	@$(PY) -m tests.schedules mutants

stacks: $(READY) $(WHEELS) ## the synthesised templates
	$(PYTEST) tests/stacks

e2e: $(READY) ## the app, deployed to a local AWS of its own
	$(PYTEST) -n 2 --dist worksteal tests/e2e

## A real account

# What is missing is said before a minute of installing, for which Python alone has to be there.
asked-%: $(PYTHON_PACKAGES)
	@$(PY) -m tools.account $* $(STAGE) --ask

synth: asked-synth $(READY) $(WHEELS) ## write the templates to cdk.out/ (STAGE=local|sandbox|prod)
	@$(PY) -m tools.account synth $(STAGE)

diff: asked-diff $(READY) $(WHEELS) ## show what a deploy would change (STAGE=sandbox SENDER=you@example.com)
	@$(PY) -m tools.account diff $(STAGE)

deploy: asked-deploy $(READY) $(WHEELS) ## deploy, after you confirm account, region and stage (STAGE=sandbox SENDER=you@example.com; ALARM_EMAIL= RUNBOOK_URL= PRODUCERS= OPERATORS= PROVIDER_SECRET_ARN=)
	@$(PY) -m tools.account deploy $(STAGE)

destroy: asked-destroy $(READY) $(WHEELS) ## take it down again, after you confirm the same (STAGE=sandbox)
	@$(PY) -m tools.account destroy $(STAGE)

smoke: $(READY) ## send a handful of orders, each several times, and see what became of them (STAGE=local|sandbox)
	@$(PY) -m tools.smoke $(STAGE)

## An operator's commands: on what `make up` started, or on an account with STAGE=sandbox|prod; JSON=1 for machines

OPERATE = $(PY) -m tools.operate
COMMON = $(if $(STAGE),--stage $(STAGE)) $(if $(JSON),--json)

dlq: $(PYTHON_PACKAGES) ## what is parked, why, and since when
	@$(OPERATE) dlq $(COMMON)

redrive: $(PYTHON_PACKAGES) ## put parked messages back (QUEUE=orders|payments|emails; DRY_RUN=1, MAX=10, REASON=key_reused, ALL=1)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) redrive $(QUEUE) $(COMMON) $(if $(DRY_RUN),--dry-run) $(if $(MAX),--max $(MAX)) $(if $(ALL),--all) $(if $(REASON),--reason $(REASON))

audit: $(PYTHON_PACKAGES) ## every order that is late, paid twice, or whose event never arrived (REPAIR=1 sends missing events; AGE=0 judges also what is on its way)
	@$(OPERATE) audit $(COMMON) $(if $(REPAIR),--repair) $(if $(AGE),--age $(AGE))

trace: $(PYTHON_PACKAGES) ## an order's story on one screen (ORDER=ord_1)
	$(call need,ORDER,ord_1)@$(OPERATE) trace $(ORDER) $(COMMON)

pause: $(PYTHON_PACKAGES) ## keep a queue's function from taking messages (QUEUE=payments)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) pause $(QUEUE) $(COMMON)

resume: $(PYTHON_PACKAGES) ## let it take them again (QUEUE=payments)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) resume $(QUEUE) $(COMMON)

forget: $(PYTHON_PACKAGES) ## delete one idempotency record, after you typed its key (KEY=payment.charge#ord_1; YES=1, SECOND_MAIL=1)
	$(call need,KEY,payment.charge#ord_1)@$(OPERATE) forget '$(KEY)' $(COMMON) $(if $(YES),--yes) $(if $(SECOND_MAIL),--second-mail)

discard: $(PYTHON_PACKAGES) ## move parked messages of one reason into a file, after you typed both (QUEUE=orders REASON=unparsable; YES=1)
	$(call need,QUEUE,orders|payments|emails)$(call need,REASON,unparsable)@$(OPERATE) discard $(QUEUE) $(REASON) $(COMMON) $(if $(YES),--yes)

recover: $(PYTHON_PACKAGES) ## put order rows back that are missing, from a copy of their table (FROM=orders-copy)
	$(call need,FROM,<name of the copied table>)@$(OPERATE) recover $(FROM) $(COMMON)

## The clone itself

setup: $(READY) $(WHEELS) ## install all tools into this folder (implicit in the others)

lock: $(READY) ## resolve requirements/*.in and package.json anew, with hashes
	@tools/lock.sh

clean: ## remove all that was installed, built or cached here
	@if [ -e .local/state.json ]; then $(MAKE) --no-print-directory down; fi
	rm -rf .venv node_modules .cache .local build cdk.out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PYTHON_PACKAGES): requirements/dev.txt tools/setup.sh
	@tools/setup.sh python
	@touch $@

$(NODE_PACKAGES): package-lock.json $(PYTHON_PACKAGES)
	@tools/setup.sh node
	@touch $@

$(WHEELS): requirements/layer.txt requirements/payment.txt $(PYTHON_PACKAGES)
	@tools/setup.sh wheels
	@touch $@

-include lab/lab.mk
