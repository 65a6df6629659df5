"""The recipe of docs/adapt.md, done word for word in a copy of the project: it runs as it stands, as it says."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_OURS = shutil.ignore_patterns(".*", "node_modules", "build", "cdk.out", "__pycache__")
END_OF_CONSUMERS = "        ]\n        self.relay"
# The tests of the recipe, and the tests that look at every stage.
TESTS = (
    "tests/unit/ship",
    "tests/stacks/test_least_privilege.py",
    "tests/stacks/test_functions.py",
    "tests/stacks/test_observability.py",
)


def test_a_stage_added_as_the_recipe_says_passes_the_tests_that_look_at_every_stage(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=NOT_OURS)
    (copy / ".cache").symlink_to(ROOT / ".cache")
    if not (copy / "functions" / "ship").exists():  # else it was followed here
        _follow(copy)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not umask", *TESTS],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _follow(copy: Path) -> None:
    handler, entry, test, paths = _blocks((ROOT / "docs" / "adapt.md").read_text())
    for path, text in {
        "functions/ship/__init__.py": "",
        "functions/ship/handler.py": handler,
        "tests/unit/ship/__init__.py": "",
        "tests/unit/ship/test_ship.py": test,
        "tests/unit/ship/paths.py": paths,
    }.items():
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(text)
    pipeline = copy / "stacks" / "pipeline.py"
    before, found, after = pipeline.read_text().partition(END_OF_CONSUMERS)
    assert found, "the list of consumers ends otherwise than docs/adapt.md says"
    pipeline.write_text(f"{before}{textwrap.indent(entry.rstrip(), ' ' * 12)},\n{found}{after}")


def _blocks(page: str) -> list[str]:
    recipe = page[page.index("## Add a stage") : page.index("## Which kind of step?")]
    return [
        textwrap.dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", recipe, re.DOTALL | re.MULTILINE)
    ]
