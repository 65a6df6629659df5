"""Whose key it is: an account with a role or a user of it."""

from typing import Any

import pytest

from tests.harness.api_fixtures import Api, role

USER = {"accountId": "111122223333", "userId": "AIDAEXAMPLEUSERID"}
ROOT = {"accountId": "111122223333", "userId": "111122223333"}


def test_two_sessions_of_one_role_with_one_key_make_one_order(api: Api) -> None:
    first, second = api.post(iam=role("pod-1")), api.post(iam=role("pod-2"))

    assert first.text == second.text
    assert second.headers["idempotent-replayed"] == "true"
    assert len(api.orders) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (role("pod", "AROAONE"), role("pod", "AROAOTHER")),
        (role("pod", account="111122223333"), role("pod", account="444455556666")),
        (USER, role("pod")),
        (USER, ROOT),
        ({**ROOT, "userId": "111122223333:alice"}, {**ROOT, "userId": "111122223333:bob"}),
        ({**ROOT, "userId": "111122223333:alice"}, ROOT),
        (
            role("CognitoIdentityCredentials") | {"cognitoIdentity": {"identityId": "eu-central-1:1"}},
            role("CognitoIdentityCredentials") | {"cognitoIdentity": {"identityId": "eu-central-1:2"}},
        ),
    ],
    ids=["roles", "accounts", "user-role", "user-root", "federated-users", "federated-root", "cognito-users"],
)
def test_two_callers_with_one_key_make_two_orders_and_do_not_see_each_others(
    api: Api, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = api.post(iam=one), api.post(iam=other)

    assert "idempotent-replayed" not in second.headers
    assert len(api.orders) == 2
    assert api.get(first.json["order_id"], iam=one).status == 200
    assert api.get(second.json["order_id"], iam=one).status == 404


def test_the_session_is_not_kept_since_it_may_be_a_persons_name(api: Api) -> None:
    api.post(iam=role("alice@example.com"))

    assert "alice" not in str(api.orders) + str(api.records) + api.log.getvalue()


@pytest.mark.parametrize("iam", [None, {}, {"accountId": "111122223333"}, {"userId": "AROAX:pod"}, {"accountId": None}])
def test_without_a_caller_nothing_is_placed_or_shown(api: Api, iam: dict[str, Any] | None) -> None:
    placed = api.post(iam=iam)
    shown = api.get("api_" + "a" * 26, iam=iam)

    assert (placed.status, placed.problem) == (403, "no-caller")
    assert (shown.status, shown.problem) == (403, "no-caller")
    assert not api.stored
