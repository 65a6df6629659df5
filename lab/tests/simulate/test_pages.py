"""The pages are what the stored runs, the counts and the settings say today."""

import json
import re
from dataclasses import asdict

from shared.orders.row import OPEN_SHARDS

from lab.simulate import page, plots
from lab.simulate.limits import RATES, limits, partitions, units
from lab.simulate.parameters import QUEUES, capacity, describe, prod, service_s, stages
from lab.simulate.runs import run, stored
from lab.simulate.scenarios import scenarios


def test_the_pages_are_up_to_date() -> None:
    assert page.PATH.read_text() == page.page(stored())
    assert page.HTML.read_text() == plots.page(stored())


def test_what_is_stored_was_run_with_todays_settings() -> None:
    known = {each.name: each for each in scenarios()}
    assert [ran.name for ran in stored()] == list(known)
    for ran in stored():
        setup = known[ran.name].setup
        assert (ran.seed, ran.slice_of) == (setup.seed, setup.slice_of)
        assert ran.workers == dict(describe(list(setup.stages)))
        assert ran.max_receives == {stage.name: stage.max_receives for stage in setup.stages}


def test_a_stored_run_is_what_the_model_says_today() -> None:
    steady = scenarios()[0]
    assert asdict(run(steady)) == json.loads(json.dumps(asdict(stored()[0])))


def test_the_plots_need_nothing_from_outside() -> None:
    assert not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org)", page.HTML.read_text())


def test_a_stage_is_sized_for_its_rate_with_room_to_spare() -> None:
    for rate in RATES:
        for stage in stages(prod(), rate):
            assert capacity(stage) > 1.3 * rate, stage


def test_a_payment_takes_its_providers_time_above_all() -> None:
    assert service_s("payments") > 3 * service_s("emails") > 3 * service_s("orders") > 0


def test_limits_are_in_orders_a_second() -> None:
    found = {(limit.hop, limit.unit): limit for limit in limits()}
    index = found["open-orders index", "index units/s"]
    assert index.orders_per_s == OPEN_SHARDS * 1000 / units("index_units")
    assert index.needs(RATES[1]) == RATES[1] * units("index_units")
    assert found["payments", "workers"].orders_per_s == capacity(stages(prod())[1])
    workers = sum(found[queue, "workers"].needs(RATES[1]) for queue in QUEUES)
    assert found["account", "workers"].needs(RATES[1]) > workers  # the API and the relay besides
    assert partitions(1) == 4
    assert partitions(1000) == 1000 * units("write_units of idempotency") / 1000
