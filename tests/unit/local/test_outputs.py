"""The stacks' outputs become one flat object under the promised names."""

import pytest

from tools.domain import OUTPUTS
from tools.local.ministack import LocalStackError
from tools.local.stack import flatten

ALL = {name: f"value of {name}" for name in OUTPUTS}


def test_outputs_of_all_stacks_are_joined_without_those_of_the_cdk_itself() -> None:
    first, second = dict(list(ALL.items())[:4]), dict(list(ALL.items())[4:])
    by_stack = {"data": {**first, "ExportsOutputRefOrders1": "x"}, "pipeline": {**second, "PublishOutputFnGetAtt": "y"}}
    assert flatten(by_stack) == ALL


def test_a_promised_output_that_is_missing_is_named() -> None:
    with pytest.raises(LocalStackError, match="no output ApiUrl"):
        flatten({"all": {name: value for name, value in ALL.items() if name != "ApiUrl"}})


def test_two_stacks_that_differ_about_an_output_are_refused() -> None:
    with pytest.raises(LocalStackError, match="'value of ApiUrl' in one stack and 'other' in two"):
        flatten({"one": ALL, "two": {"ApiUrl": "other"}})
