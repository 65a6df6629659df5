"""Random walks: schedules drawn one by one, with more that goes wrong than can be explored in full."""

import random
import time

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import Report, play
from tests.schedules.run import Run
from tests.schedules.scenarios import Scenario

FAULTS = 5  # at most, in one walk
LIKELY = 0.08  # a move is a fault, where one is left


def walk(environment: ExplorerEnvironment, scenario: Scenario, walks: int, seed: int) -> Report:
    """Walk so often. Each walk is a schedule that can be replayed."""
    report = Report(scenario.name, FAULTS, walk=True)
    begun = time.process_time()
    for number in range(seed, seed + walks):
        rng = random.Random(f"{scenario.name} {number}")

        def choose(_: Run, __: list[str], possible: list[str], rng: random.Random = rng) -> str:
            plain = [move for move in possible if move.isalnum()]
            faulty = [move for move in possible if not move.isalnum()]
            return rng.choice(faulty if faulty and rng.random() < LIKELY else plain)

        report.enter(scenario, play(environment, scenario, [], FAULTS, choose))
    report.seconds = time.process_time() - begun
    return report
