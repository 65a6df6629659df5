# `make help` lists the targets. Each target installs what it needs, once.

.DEFAULT_GOAL := help
.PHONY: help setup lock check test lint types unit verify replay mutants stacks e2e up down order invoke logs synth preflight diff deploy destroy smoke \
	dlq redrive audit trace pause resume forget discard settle recover clean

PYTHON_PACKAGES := .venv/.done
NODE_PACKAGES := node_modules/.done
WHEELS := .cache/wheels/.done
READY := $(PYTHON_PACKAGES) $(NODE_PACKAGES)
SOURCES := $(wildcard app.py) stacks functions shared tests tools

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CDK_DISABLE_CLI_TELEMETRY := true

# The values of these variables reach the tools as they are. make would expand `$(...)` in a value from the command line,
# and the shell would expand it once more: an order id or a queue name may come from a stranger.
ifeq ($(origin EMAIL),environment) # a person's own address, as git reads it, and not a value for make
EMAIL :=
endif
VALUES := AGE AMOUNT AS EMAIL FROM FUNCTION KEY MAX METHOD ORDER PORT QUEUE REASON SCHEDULE STAGE
$(foreach name,$(VALUES),$(eval override $(name) := $$(value $(name))))

# Stop if a variable has no value: $(call need,ORDER,ord_1)
need = $(if $($(1)),,$(error make $@ needs $(1)=$(2)))
# The value of a variable as one word of the shell, and an option with it if there is a value.
quote = '$(subst ','\'',$($(1)))'
option = $(if $($(2)),--$(1) $(call quote,$(2)))

help: ## print this list
	@awk -F ':.*## ' '/^## /{ printf "\n%s\n", substr($$0, 4) } /^[a-z0-9-]+:.*## /{ printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n'

## On the laptop: a local AWS, no account, no Docker

up: $(READY) ## start a local AWS, deploy the application, leave it running (PORT=4566; default: a free port)
	@$(PY) -m tools.local up $(call option,port,PORT)

down: $(PYTHON_PACKAGES) ## stop the local AWS and delete its data
	@$(PY) -m tools.local down

order: $(PYTHON_PACKAGES) ## post an order, wait until it is final, print its story (METHOD=pm_card_visa EMAIL= AMOUNT=2500 STAGE=sandbox)
	@$(PY) -m tools.order $(call option,stage,STAGE) $(call option,method,METHOD) $(call option,email,EMAIL) $(call option,amount,AMOUNT)

invoke: $(PYTHON_PACKAGES) ## invoke a function with its sample event (FUNCTION=order)
	@$(PY) -m tools.local invoke $(call quote,FUNCTION)

logs: $(PYTHON_PACKAGES) ## print the log of a function (FUNCTION=order)
	@$(PY) -m tools.local logs $(call quote,FUNCTION)

## Checks

check: $(PYTHON_PACKAGES) ## the inner loop, under a minute: ruff, import rules, mypy and unit tests of shared/ and functions/
	.venv/bin/ruff check . && .venv/bin/ruff format --check --quiet .
	.venv/bin/lint-imports --no-logo
	.venv/bin/mypy shared functions
	$(PYTEST) -n 2 --dist worksteal $(addprefix tests/unit/,idempotency orders api order payment email relay sweep)

test: lint types unit stacks e2e ## run everything that a change must pass

lint: $(READY) ## run ruff, its formatter, import rules, and GitHub's own check of the workflow
	.venv/bin/ruff check . && .venv/bin/ruff format --check --quiet .
	.venv/bin/lint-imports --no-logo
	.venv/bin/node tools/workflows.mjs .github/workflows/*.yml

types: $(PYTHON_PACKAGES) ## mypy --strict
	.venv/bin/mypy $(SOURCES)

unit: $(PYTHON_PACKAGES) ## run all unit tests and every schedule with one fault (no AWS; minutes)
	$(PYTEST) -n 2 --dist worksteal tests/schedules tests/unit

verify: $(PYTHON_PACKAGES) ## every schedule with two faults, and long random walks (minutes; DEEP=1 also with two copies of a message)
	@$(PY) -m tests.schedules verify $(if $(DEEP),--deep)

replay: $(PYTHON_PACKAGES) ## show a schedule call by call (SCHEDULE=payment:pAAA?pBA, as a failing test prints it)
	$(call need,SCHEDULE,'payment:pAAA?pBA' (in quotes))@$(PY) -m tests.schedules replay $(call quote,SCHEDULE)

mutants: $(PYTHON_PACKAGES) ## break the code in named ways, and fail if no test notices (minutes)
	@$(PY) -m tests.schedules mutants

stacks: $(READY) $(WHEELS) ## test the synthesised templates
	$(PYTEST) tests/stacks

e2e: $(READY) ## test the application on a local AWS of its own
	$(PYTEST) -n 2 --dist worksteal tests/e2e

## A real account

# Checks the arguments before a minute of installing. The check needs Python only.
asked-%: $(PYTHON_PACKAGES)
	@$(PY) -m tools.account $* $(call quote,STAGE) --ask

synth: asked-synth $(READY) $(WHEELS) ## write the templates to cdk.out/ (STAGE=local|sandbox|prod)
	@$(PY) -m tools.account synth $(call quote,STAGE)

preflight: asked-preflight $(PYTHON_PACKAGES) ## check account, region, quotas, email and secret before a deploy (STAGE=sandbox SENDER=you@example.com)
	@$(PY) -m tools.account preflight $(call quote,STAGE)

diff: asked-diff $(READY) $(WHEELS) ## show what a deploy would change (STAGE=sandbox SENDER=you@example.com)
	@$(PY) -m tools.account diff $(call quote,STAGE)

deploy: asked-deploy $(READY) $(WHEELS) ## deploy, after you confirm account, region and stage (STAGE=sandbox SENDER=you@example.com; ALARM_EMAIL= RUNBOOK_URL= PRODUCERS= OPERATORS= PROVIDER_SECRET_ARN=)
	@$(PY) -m tools.account deploy $(call quote,STAGE)

destroy: asked-destroy $(READY) $(WHEELS) ## delete the deployment, after you confirm the same (STAGE=sandbox)
	@$(PY) -m tools.account destroy $(call quote,STAGE)

smoke: $(READY) ## send a few orders, each several times, and check the outcome of each (STAGE=local|sandbox)
	@$(PY) -m tools.smoke $(if $(STAGE),$(call quote,STAGE))

## An operator's commands: on what `make up` started, or on an account with STAGE=sandbox|prod; JSON=1 prints JSON

OPERATE = $(PY) -m tools.operate
COMMON = $(call option,stage,STAGE) $(if $(filter-out 0,$(JSON)),--json)

dlq: $(PYTHON_PACKAGES) ## list parked messages with reason and time
	@$(OPERATE) dlq $(COMMON)

redrive: $(PYTHON_PACKAGES) ## move parked messages back to their queue (QUEUE=orders|payments|emails; DRY_RUN=1, MAX=10, REASON=key_reused, ALL=1)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) redrive $(call quote,QUEUE) $(COMMON) $(if $(filter-out 0,$(DRY_RUN)),--dry-run) $(call option,max,MAX) $(if $(filter-out 0,$(ALL)),--all) $(call option,reason,REASON)

audit: $(PYTHON_PACKAGES) ## list orders that are late, paid twice, or without their next event (REPAIR=1 sends missing events; AGE=0 also checks orders on their way)
	@$(OPERATE) audit $(COMMON) $(if $(filter-out 0,$(REPAIR)),--repair) $(call option,age,AGE)

trace: $(PYTHON_PACKAGES) ## print the story of one order (ORDER=ord_1)
	$(call need,ORDER,ord_1)@$(OPERATE) trace $(call quote,ORDER) $(COMMON)

pause: $(PYTHON_PACKAGES) ## stop the function of a queue from taking messages (QUEUE=payments)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) pause $(call quote,QUEUE) $(COMMON)

resume: $(PYTHON_PACKAGES) ## let the function take messages again (QUEUE=payments)
	$(call need,QUEUE,orders|payments|emails)@$(OPERATE) resume $(call quote,QUEUE) $(COMMON)

forget: $(PYTHON_PACKAGES) ## delete one idempotency record, after you typed its key (KEY=payment.charge#ord_1; YES=1, SECOND_MAIL=1)
	$(call need,KEY,payment.charge#ord_1)@$(OPERATE) forget $(call quote,KEY) $(COMMON) $(if $(filter-out 0,$(YES)),--yes) $(if $(filter-out 0,$(SECOND_MAIL)),--second-mail)

discard: $(PYTHON_PACKAGES) ## move parked messages of one reason into a file, after you typed both (QUEUE=orders REASON=unparsable; YES=1)
	$(call need,QUEUE,orders|payments|emails)$(call need,REASON,unparsable)@$(OPERATE) discard $(call quote,QUEUE) $(call quote,REASON) $(COMMON) $(if $(filter-out 0,$(YES)),--yes)

settle: $(PYTHON_PACKAGES) ## end a placed order that can never be paid, after you typed its id (ORDER=ord_1 AS=declined REASON=payment_method_missing; YES=1)
	$(call need,ORDER,ord_1)$(call need,AS,declined)$(call need,REASON,payment_method_missing)@$(OPERATE) settle $(call quote,ORDER) $(call option,as,AS) $(call option,reason,REASON) $(COMMON) $(if $(filter-out 0,$(YES)),--yes)

recover: $(PYTHON_PACKAGES) ## put missing order rows back from a copy of the table (FROM=orders-copy)
	$(call need,FROM,<name of the copied table>)@$(OPERATE) recover $(call quote,FROM) $(COMMON)

## The clone itself

setup: $(READY) $(WHEELS) ## install all tools into this folder (implicit in the others)

lock: $(READY) ## resolve requirements/*.in and package.json again, and write the locks with hashes
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
