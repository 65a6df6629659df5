"""DynamoDB requests drawn at random, in the forms that this repository uses: the model and moto answer them alike."""

import random
import re
from typing import Any

KEYS = ("a", "b", "c")
# Attributes by type. No comparison is between types: there moto and MiniStack differ from AWS and from each other.
TEXTS, NUMBERS, FLAGS = ("s", "owner", "status"), ("n", "expiration"), ("f",)
TABLES = {"idempotency": "id", "orders": "order_id"}


class RandomRequests:
    """One request after another from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def request(self) -> tuple[str, dict[str, Any]]:
        """An operation and its parameters, as boto3 takes them."""
        kind = self.rng.choice(["GetItem", "PutItem", "UpdateItem", "UpdateItem", "DeleteItem", *["Transact"] * 3])
        if kind == "GetItem":
            table = self._table()
            return kind, {"TableName": table, "Key": self._key(table), "ConsistentRead": True}
        if kind != "Transact":
            body = self._write(kind.removesuffix("Item"), self._table(), self.rng.choice(KEYS))
            returned = ["NONE", "ALL_OLD"] + (["ALL_NEW"] if kind == "UpdateItem" else [])
            return kind, {**body, "ReturnValues": self.rng.choice(returned)}
        places = self.rng.sample([(table, key) for table in TABLES for key in KEYS], self.rng.randint(1, 3))
        kinds = [self.rng.choice(["Put", "Update", "Update", "Delete", "ConditionCheck"]) for _ in places]
        items = [{kind: self._write(kind, *place)} for kind, place in zip(kinds, places, strict=True)]
        return "TransactWriteItems", {"TransactItems": items}

    def _table(self) -> str:
        return self.rng.choice(list(TABLES))

    def _key(self, table: str, key: str | None = None) -> dict[str, Any]:
        return {TABLES[table]: {"S": key or self.rng.choice(KEYS)}}

    def _write(self, kind: str, table: str, key: str) -> dict[str, Any]:
        self.offered: dict[str, Any] = {}
        body: dict[str, Any] = {"TableName": table}
        if kind == "Put":
            body["Item"] = {**self._key(table, key), **{name: self._value(name) for name in self._some_names()}}
        else:
            body["Key"] = self._key(table, key)
        if kind == "Update":
            body["UpdateExpression"] = self._update()
        if kind == "ConditionCheck" or self.rng.random() < 0.7:
            body["ConditionExpression"] = self._condition(TABLES[table], depth=2)
            if self.rng.random() < 0.7:
                body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        # DynamoDB refuses placeholders that no expression uses.
        used = set(re.findall(r"[#:]\w+", body.get("UpdateExpression", "") + " " + body.get("ConditionExpression", "")))
        for sign, parameter in (("#", "ExpressionAttributeNames"), (":", "ExpressionAttributeValues")):
            if chosen := {token: self.offered[token] for token in sorted(used) if token[0] == sign}:
                body[parameter] = chosen
        return body

    def _update(self) -> str:
        names = self._some_names()
        split = self.rng.randint(0, len(names))
        sets, removes = names[:split], names[split:]
        clauses = []
        if sets:
            clauses.append("SET " + ", ".join(map(self._assignment, sets)))
        if removes:
            clauses.append("REMOVE " + ", ".join(map(self._name, removes)))
        return " ".join(clauses)

    def _assignment(self, name: str) -> str:
        path, value = self._name(name), self._offer(self._value(name))
        other = self._name(self.rng.choice(next(names for names in (TEXTS, NUMBERS, FLAGS) if name in names)))
        forms = [f"{path} = {value}", f"{path} = if_not_exists({other}, {value})"]
        if name in NUMBERS:
            step = self._offer({"N": str(self.rng.randint(0, 3))})
            forms.append(f"{path} = if_not_exists({path}, {value}) {self.rng.choice('+-')} {step}")
        return self.rng.choice(forms)

    def _condition(self, key: str, depth: int) -> str:
        if depth and self.rng.random() < 0.6:
            left, right = (self._condition(key, depth - 1) for _ in range(2))
            joint = self.rng.choice(["AND", "OR"])
            return f"({left}) {joint} ({right})" if self.rng.random() < 0.5 else f"{left} {joint} {right}"
        name = self.rng.choice((*TEXTS, *NUMBERS, *FLAGS, key))
        if name == key or self.rng.random() < 0.4:
            atom = f"{self.rng.choice(['attribute_exists', 'attribute_not_exists'])}({self._name(name)})"
        else:
            sign = "=" if name in FLAGS else self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
            atom = f"{self._name(name)} {sign} {self._offer(self._value(name))}"
        return f"NOT {atom}" if self.rng.random() < 0.2 else atom

    def _name(self, name: str) -> str:
        self.offered[f"#{name}"] = name
        return f"#{name}"

    def _offer(self, value: dict[str, Any]) -> str:
        token = f":v{len(self.offered)}"
        self.offered[token] = value
        return token

    def _some_names(self) -> list[str]:
        names = [*TEXTS, *NUMBERS, *FLAGS]
        return self.rng.sample(names, self.rng.randint(1, 4))

    def _value(self, name: str) -> dict[str, Any]:
        if name in NUMBERS:
            return {"N": str(self.rng.randint(0, 4))}
        if name in FLAGS:
            return {"BOOL": self.rng.random() < 0.5}
        return {"S": self.rng.choice(("x", "y", "INPROGRESS"))}
