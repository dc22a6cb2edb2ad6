"""Label Studio: its JSON export of choices is read, and tasks to import into it are written."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import pyarrow as pa

from demur.files.errors import DataError

CONTROL, OBJECT = "label", "item"  # names of what `tasks` and `labelling_page` agree on
QUESTION = "demur_question"


class LabelStudioAnswers(NamedTuple):
    """Who chose what: one entry a choice; rows count tasks from 0."""

    rows: list[int]
    workers: list[str]
    labels: list[str]
    controls: list[str]


def read_tasks(content: bytes, name: str) -> tuple[pa.Table, LabelStudioAnswers]:
    """Data and answers of an export (its form JSON, not JSON-MIN).

    Columns are the keys of the tasks' ``data``, and ``id`` where they have none.
    """
    try:
        tasks = json.loads(content.decode("utf-8-sig"))
    except (UnicodeError, ValueError, RecursionError) as error:
        raise DataError(f"{name} is no JSON: {str(error)[:200]}.") from None
    if not isinstance(tasks, list) or not all(
        isinstance(t, dict) and isinstance(t.get("data"), dict) for t in tasks
    ):
        raise DataError(
            f"{name} is no export of Label Studio: a list of tasks with data is wanted."
        )
    if not tasks:
        raise DataError(f"{name} holds no tasks.")
    answers = LabelStudioAnswers([], [], [], [])
    for row, task in enumerate(tasks):
        _read_annotations(task, row, answers, name)
    keys = list(dict.fromkeys(str(key) for task in tasks for key in task["data"]))
    columns: dict[str, Any] = {}
    if "id" not in keys:
        columns["id"] = _column([task.get("id") for task in tasks])
    for key in keys:
        columns[key] = _column([task["data"].get(key) for task in tasks])
    return pa.table(columns), answers


def _column(values: list[Any]) -> pa.Array:
    """Numbers where all are, else text."""
    given = [v for v in values if v is not None]
    if given and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in given):
        try:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        except OverflowError:
            pass
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(
        [None if t is None else t.encode("utf-8", "replace").decode() for t in texts], pa.string()
    )


def _read_annotations(task: Any, row: int, answers: LabelStudioAnswers, name: str) -> None:
    for annotation in task.get("annotations") or []:
        try:
            if annotation.get("was_cancelled"):
                continue
            by = annotation.get("completed_by", "unknown")
            worker = str(by.get("email") or by.get("id")) if isinstance(by, dict) else str(by)
            for result in annotation.get("result") or []:
                if result.get("type") != "choices":
                    continue
                for choice in result["value"]["choices"]:
                    if not isinstance(choice, str):
                        raise TypeError
                    answers.rows.append(row)
                    answers.workers.append(worker)
                    answers.labels.append(choice)
                    answers.controls.append(str(result.get("from_name")))
        except (AttributeError, KeyError, TypeError):
            raise DataError(
                f"{name}, task {row + 1}: an annotation is not as Label Studio exports choices."
            ) from None


def task(data: dict[str, Any], label: str, plausible: list[str], score: float, by: str) -> str:
    """A task to import, with the plausible labels ticked, as one line of JSON."""
    question = f"Which is it? demur would say {label}, but is not sure."
    ticked = {
        "from_name": CONTROL,
        "to_name": OBJECT,
        "type": "choices",
        "value": {"choices": plausible},
    }
    prediction = {"model_version": by, "score": score, "result": [ticked]}
    return json.dumps(
        {"data": {**data, QUESTION: question}, "predictions": [prediction]}, default=str
    )


def labelling_page(classes: list[str]) -> str:
    """Label Studio's description of a page that asks for one or more of the classes."""
    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in classes)
    return (
        "<View>\n"
        "  <!-- show here what a person needs to see, such as an image: -->\n"
        '  <!-- <Image name="picture" value="$url"/> -->\n'
        f'  <Text name="{OBJECT}" value="${QUESTION}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{OBJECT}" choice="multiple">\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )
