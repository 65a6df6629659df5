# Demonstrations and measurements. The Makefile includes this file and works without this folder.

.PHONY: demo chaos console screenshot peers replay-peer bench cost simulate order-path lab-lint lab-test

LAB := .venv/.lab $(READY)

## Demonstrations on the laptop

demo: $(LAB) ## compare three pipelines under the same orders and faults; writes build/demo.html (ORDERS=100 SEED=1 FAULTS=6)
	@$(PY) -m lab.demo $(if $(ORDERS),--orders $(ORDERS)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS))

chaos: $(LAB) ## a long run that can be resumed: kills, copies, DLQ replays; writes build/chaos.md (ORDERS=10000 SEED=1 FAULTS=10)
	@$(PY) -m lab.chaos $(if $(ORDERS),--orders $(ORDERS)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS))

console: $(LAB) ## a live page of two pipelines with buttons that cause failures, until Ctrl-C (PORT=8080)
	@$(PY) -m lab.console $(if $(PORT),--port $(PORT))

screenshot: $(LAB) ## write docs/images/console.png; needs Chromium (minutes)
	@$(PY) -m lab.screenshot

## Measurements

peers: $(LAB) ## explore the payment step of other libraries and patterns; writes lab/docs/peers.md (minutes)
	@$(PY) -m lab.peers compare

replay-peer: $(LAB) ## show one schedule of a peer call by call (SCHEDULE= as in lab/docs/peers.md)
	$(call need,SCHEDULE,'powertools:pAAA?pBA' (in quotes))@$(PY) -m lab.peers replay $(call quote,SCHEDULE)

bench: $(LAB) $(WHEELS) ## measure this repository and the peers; writes lab/benchmarks/results.json and lab/docs/performance.md (ONLY=cpu,guard QUICK=1)
	@$(PY) -m lab.benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

cost: $(LAB) ## price an order by stage, and compare with other services (ORDERS_PER_MONTH=1000000 DUPLICATE_RATE=0.01 REGION=us-east-1; JSON=1)
	@$(PY) -m lab.cost $(if $(ORDERS_PER_MONTH),--orders-per-month $(ORDERS_PER_MONTH)) $(if $(DUPLICATE_RATE),--duplicate-rate $(DUPLICATE_RATE)) $(if $(REGION),--region $(REGION)) $(if $(JSON),--json)

simulate: $(LAB) ## simulate latency and backlog at high rates, in bursts and outages; writes lab/docs/scale.md (minutes)
	@$(PY) -m lab.simulate

order-path: $(LAB) ## print the functions and files that one order enters
	@$(PY) -m lab.order_path

## Checks of lab/

lab-lint: $(LAB) ## mypy --strict over lab/; ruff checks it in `make lint`
	.venv/bin/mypy --config-file lab/mypy.ini lab

lab-test: $(LAB) lab-lint $(WHEELS) ## the tests of lab/
	$(PYTEST) -c lab/pytest.ini -n 2 lab/tests

.venv/.lab: lab/requirements.txt $(PYTHON_PACKAGES)
	@.venv/bin/uv pip install --quiet --python $(PY) --require-hashes -r lab/requirements.txt
	@touch $@
