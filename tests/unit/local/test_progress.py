"""Progress: what is shown of a step, whatever is in its name."""

import re
from io import StringIO

import pytest
from rich.console import Console

from tools.progress import Steps


@pytest.mark.parametrize("terminal", [False, True])
def test_a_step_is_shown_as_it_is_named_also_when_the_name_looks_like_markup(terminal: bool) -> None:
    shown = StringIO()
    out = Console(file=shown, force_terminal=terminal, color_system=None, width=100)

    with Steps(out) as steps, steps.step("redriving [/x] of [red]orders", total=2) as tell:
        tell(done=1, detail="[/y]")
    with pytest.raises(KeyError), Steps(out) as steps, steps.step("[/z]"):
        raise KeyError

    assert re.search(r"✓ redriving \[/x\] of \[red\]orders \d+\.\d s", shown.getvalue())
    assert re.search(r"✗ \[/z\] \d+\.\d s", shown.getvalue())
