"""Text for people and programs from houkai's records, shared by the command line and the browser.

Nothing a memory says reaches a terminal as a control: every such sign is written out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TextIO

from houkai import clock
from houkai.model import JournalEntry, Memory

Format = Literal["auto", "rich", "tsv", "json", "jsonl"]
Record = Mapping[str, Any]
Cell = Callable[[Record], str]

SHORT: Final = 8
EXCERPT: Final = 240

# C0 and C1 controls, and the signs that reorder or split a line; tab and newline are left.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_TO_ESCAPE: Final = re.compile(r"[\\\t\n\r]")


def printable(text: str) -> str:
    """Return text with its control signs written out; newlines and tabs stay."""
    return _CONTROL.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return text on one line: white space joined, controls written out."""
    return printable(" ".join(text.split()))


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """Return the beginning of a text on one line."""
    # A text may be a megabyte long; a little more than the limit shows whether it goes on.
    line = one_line(text[: 4 * limit])
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def tsv_cell(text: str) -> str:
    r"""Return text as one TSV cell: \t, \n, \r and \\ stand for what they name."""
    return _CONTROL.sub(_written_out, _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text))


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = 2) -> str:
    """Return JSON that is safe to print: control signs are escaped inside its strings."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    return re.sub(
        "[\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]",
        lambda match: f"\\u{ord(match[0]):04x}",
        text,
    )


def short(id: str) -> str:
    """Return the beginning of an id, enough to name it to a command."""
    return id[:SHORT]


def moment(seconds: float | None) -> str:
    """Return a moment for people: its ISO time and how long ago that is; "" for none."""
    if seconds is None:
        return ""
    age = clock.ago(seconds)
    return f"{clock.iso(seconds)} ({age if age.startswith('in ') else age + ' ago'})"


def size(count: float) -> str:
    """Return a number of bytes in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


@dataclass(frozen=True)
class View:
    """How a kind of record is shown: `fields` to programs, `columns` to people, text last.

    `note` says below a table what is the same in all its rows.
    """

    fields: Mapping[str, Cell]
    columns: Mapping[str, Cell]
    note: str = ""


def memory_view(records: Sequence[Record], keys: Collection[str] = ()) -> View:
    """Return the view of memories with `keys` of score, explain, rel; collections where several."""
    fields: dict[str, Cell] = {
        "id": lambda r: r["id"],
        "type": lambda r: r["type"],
        "importance": lambda r: f"{r['importance']:g}",
        "tags": lambda r: ",".join(r["tags"]),
        "created_at": lambda r: str(int(r["created_at"])),
        "text": lambda r: r["text"],
    }
    columns: dict[str, Cell] = {
        "id": lambda r: short(r["id"]),
        "type": lambda r: r["type"],
        "imp": lambda r: f"{r['importance']:.2f}",
        "age": lambda r: clock.ago(r["created_at"]),
        "tags": lambda r: ", ".join(r["tags"]),
        "text": _text_and_marks,
    }
    if "score" in keys:
        fields["score"] = lambda r: f"{r['score']:.6g}"
        # Adding zero turns a rounded -0.0 into 0.0.
        columns = {"score": lambda r: f"{round(r['score'], 3) + 0.0:.3f}", **columns}
    shared: Mapping[str, Any] = {}
    if "explain" in keys:
        shared = _settings([r["explain"] for r in records])
        fields["explain"] = lambda r: json_text(r["explain"], indent=None)
        columns["text"] = lambda r: f"{_text_and_marks(r)}\n{_evidence(r['explain'], shared)}"
    if "rel" in keys:
        fields["rel"] = lambda r: r["rel"]
        columns = {"rel": lambda r: r["rel"], **columns}
    if len({r["collection"] for r in records}) > 1:
        columns = {"collection": lambda r: r["collection"], **columns}
    return View(fields, columns, _evidence(shared))


def _text_and_marks(record: Record) -> str:
    found = marks(record)
    return (f"({', '.join(found)}) " if found else "") + excerpt(record["text"])


def marks(record: Record) -> list[str]:
    """Name what sets a memory apart from a plain, live, trusted one."""
    expires_at = record["expires_at"]
    found = {
        "pinned": record["pinned"],
        record["trust"]: record["trust"] != "trusted",
        "superseded": record["superseded_by"] is not None,
        "expired": expires_at is not None and expires_at <= clock.now(),
    }
    return [name for name, is_so in found.items() if is_so]


def _settings(explains: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return how all was ranked: what explains no row in particular."""
    first, *others = explains or [{}]
    return {
        name: part
        for name, part in first.items()
        if not isinstance(part, float) and all(other.get(name) == part for other in others)
    }


def _evidence(explain: Mapping[str, Any], known: Collection[str] = ()) -> str:
    """Say what parts a score has; those that are known already or nothing are left out."""

    def value(part: Any) -> str:
        if isinstance(part, Mapping):
            return "(" + ", ".join(f"{name} {value(one)}" for name, one in part.items()) + ")"
        return f"{part:.4g}" if isinstance(part, float) else str(part)

    told = ((name, part) for name, part in explain.items() if name not in known and part != 0)
    return "  ".join(f"{name}={value(part)}" for name, part in told)


JOURNAL: Final = View(
    fields={
        "number": lambda r: str(r["operation"]),
        "id": lambda r: r["operation_id"],
        "at": lambda r: str(int(r["ts"])),
        "op": lambda r: r["op"],
        "actor": lambda r: r["actor"],
        "changes": lambda r: str(r["changes"]),
        "undone_by": lambda r: str(r["undone_by"] or ""),
        "summary": lambda r: r["summary"],
    },
    columns={
        "number": lambda r: str(r["operation"]),
        "age": lambda r: clock.ago(r["ts"]),
        "actor": lambda r: r["actor"],
        "what": lambda r: about(r) + _undone(r),
    },
)


def about(record: Record) -> str:
    """Say what a journal entry is about: its summary and the beginning of the text."""
    image = record["after"] or record["before"] or {}
    text = f' "{excerpt(image["text"], 60)}"' if image.get("text") else ""
    return one_line(record["summary"]) + text


def _undone(record: Record) -> str:
    return f" (undone by {record['undone_by']})" if record["undone_by"] else ""


def entry_record(entry: JournalEntry) -> dict[str, Any]:
    """Return a journal entry as plain JSON types, with its summary."""
    return {**asdict(entry), "summary": entry.summary}


def entry_lines(entry: JournalEntry) -> Iterable[str]:
    """Yield a journal entry for people: what happened, then each field that changed."""
    record = entry_record(entry)
    what = about(record) + _undone(record)
    yield f"{entry.operation}  {moment(entry.ts)}  {one_line(entry.actor)}  {what}"
    if entry.before is None or entry.after is None:
        return
    for name in entry.changed_fields():
        old, new = entry.before.get(name), entry.after.get(name)
        yield f"    {name}: {field_text(name, old)} -> {field_text(name, new)}"


def field_text(name: str, value: Any) -> str:
    """Return one field of a record for people, on one line."""
    if value is None:
        return "(none)"
    if name.endswith(("_at", "_from", "_until")) and isinstance(value, int | float):
        return clock.iso(value)
    return excerpt(json.dumps(value, ensure_ascii=False), 120)


def memory_text(memory: Memory) -> str:
    """Return everything about a memory for people: its fields, a blank line, its text."""
    times = ("created_at", "last_accessed", "expires_at", "valid_from", "valid_until",
             "superseded_at")  # fmt: skip
    shown: dict[str, str] = {}
    for name, value in memory.to_dict().items():
        if name in ("text", "content_hash") or value in (None, [], False):
            continue
        if name in times:
            value = moment(value)
        elif name == "links":
            value = ", ".join(f"{link['rel']} -> {short(link['to'])}" for link in value)
        elif isinstance(value, list):
            value = ", ".join(value)
        shown[name] = "yes" if value is True else one_line(str(value))
    return pairs(shown) + f"\n\n{printable(memory.text)}"


def pairs(values: Mapping[str, str]) -> str:
    """Return names and values as aligned lines."""
    width = max((len(name) for name in values), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items())


def is_utf8(stream: TextIO) -> bool:
    """Say whether a stream can carry every sign."""
    return (stream.encoding or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
