"""Random walks: random schedules with more faults than a full search can explore."""

import random
import time

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import Report, play
from tests.schedules.run import Run
from tests.schedules.scenarios import Scenario

FAULTS = 5  # the most faults of one walk
LIKELY = 0.08  # the probability that a move is a fault


def walk(environment: ExplorerEnvironment, scenario: Scenario, walks: int, seed: int) -> Report:
    """Make a number of walks. Each walk is a schedule that can be replayed."""
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
