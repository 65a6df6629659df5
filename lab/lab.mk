# Demonstrations and measurements. Included by the Makefile, which works without this folder.

.PHONY: demo chaos console peers replay-peer bench cost simulate lab-lint lab-test

LAB := .venv/.lab $(READY)

## Demonstrations on the laptop

demo: $(LAB) ## three pipelines side by side, the same orders and faults; writes build/demo.html (ORDERS=100, at least; SEED=1 FAULTS=6)
	@$(PY) -m lab.demo $(if $(ORDERS),--orders $(ORDERS)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS))

chaos: $(LAB) ## a long run that can be stopped and goes on: kills, triplicates, DLQ replays; writes build/chaos.md (ORDERS=10000 SEED=1 FAULTS=10)
	@$(PY) -m lab.chaos $(if $(ORDERS),--orders $(ORDERS)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS))

console: $(LAB) ## a page to watch and trouble two pipelines side by side, until Ctrl-C (PORT=8080; without, a free one)
	@$(PY) -m lab.console $(if $(PORT),--port $(PORT))

## Measurements

peers: $(LAB) ## the same payment step as others write it, on the same bench; writes lab/docs/peers.md (minutes)
	@$(PY) -m lab.peers compare

replay-peer: $(LAB) ## show one schedule of a peer call by call (SCHEDULE=, as lab/docs/peers.md prints it)
	$(call need,SCHEDULE,'powertools:pAAA?pBA' (in quotes))@$(PY) -m lab.peers replay '$(SCHEDULE)'

bench: $(LAB) $(WHEELS) ## measure everything beside the peers; writes lab/benchmarks/results.* and lab/docs/performance.md (ONLY=cpu,own QUICK=1; GROWTH_ORDERS=100,1000)
	@$(PY) -m lab.benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

cost: $(LAB) ## price an order stage by stage, beside others (ORDERS_PER_MONTH=1000000 DUPLICATE_RATE=0.01 REGION=us-east-1; JSON=1)
	@$(PY) -m lab.cost $(if $(ORDERS_PER_MONTH),--orders-per-month $(ORDERS_PER_MONTH)) $(if $(DUPLICATE_RATE),--duplicate-rate $(DUPLICATE_RATE)) $(if $(REGION),--region $(REGION)) $(if $(JSON),--json)

simulate: $(LAB) ## latency and backlog at large rates, in bursts and outages; writes lab/docs/scale.md (minutes)
	@$(PY) -m lab.simulate

## Checks of lab/

lab-lint: $(LAB) ## mypy --strict over lab/; ruff checks it in `make lint`
	.venv/bin/mypy --config-file lab/mypy.ini lab

lab-test: $(LAB) lab-lint $(WHEELS) ## the tests of lab/
	$(PYTEST) -c lab/pytest.ini -n 2 lab/tests

.venv/.lab: lab/requirements.txt $(PYTHON_PACKAGES)
	@.venv/bin/uv pip install --quiet --python $(PY) --require-hashes -r lab/requirements.txt
	@touch $@
