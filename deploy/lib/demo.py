#!/usr/bin/python3
"""The scenes of deploy/demo and how they are shown.

demo.py prepare FOLDER    writes FOLDER/requests/*.json (what is sent), FOLDER/malformed and FOLDER/script.json
                          (what the simulator does with which device)
demo.py show FOLDER       shows what came of it, from journal.ndjson, feedback.ndjson, dead.ndjson and results.ndjson;
                          exits 1 when a request is not accounted for
"""

import hashlib
import itertools
import json
import os
import pathlib
import sys
import textwrap
import unicodedata

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Fixtures" / "requests"
WIDTH = 96

COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
BOLD, DIM, RED, GREEN, PLAIN = (f"\x1b[{code}m" if COLOUR else "" for code in (1, 2, 31, 32, 0))


def token(name):
    """A device token in Apple's form, the same in every run."""
    return hashlib.sha256(name.encode()).hexdigest()


# Name, what it is to show, request (None: the fixture of that name), what the device provokes, expected end.
SCENES = [
    ("seed000-notification", "a notification", None, None, "delivered"),
    ("seed000-data", "data only, in the background", None, None, "delivered"),
    ("seed000-hybrid", "notification and data", None, None, "delivered"),
    ("seed000-priority", "normal priority", None, None, "delivered"),
    ("seed000-ttl", "collapse key and three seconds to live", None, None, "delivered"),
    ("seed004-both-systems", "localised text with arguments, for both systems", None, None, "delivered"),
    ("busy-device", "the provider refuses once, the second attempt gets through",
     {"notification": {"title": "Patience", "body": "Third time lucky? The second was enough."}},
     [{"status": 429, "reason": "TooManyRequests", "retry_after": 1}], "delivered"),
    ("app-removed", "the app is no longer installed",
     {"notification": {"body": "Anybody there?"}},
     {"status": 410, "reason": "Unregistered", "timestamp": 1732137600000}, "feedback"),
    ("wrong-environment", "a token of the other environment",
     {"notification": {"body": "Sent to the sandbox's token."}},
     {"status": 400, "reason": "BadDeviceToken"}, "dead"),
]
MALFORMED = '{"to": "apns:00", "notification": {"body": "cut short'


def request(name, given):
    if given is None:
        given = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return {"to": f"apns:{token(name)}", **{key: value for key, value in given.items() if key != "to"}}


def prepare(folder):
    requests = folder / "requests"
    requests.mkdir()
    script = {}
    for number, (name, _, given, provoked, _) in enumerate(SCENES, 1):
        text = json.dumps(request(name, given), ensure_ascii=False)
        (requests / f"{number}-{name}.json").write_text(text + "\n", encoding="utf-8")
        if provoked:
            script[token(name)] = provoked
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    (folder / "malformed").write_text(MALFORMED, encoding="utf-8")


# --- what a phone would show ---


def width(text):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
               for character in text)


def pad(text, columns):
    return text + " " * max(0, columns - width(text))


def words(alert, text, key, arguments):
    """The text itself, or the localisation key with its arguments, as the app will look it up."""
    if key not in alert:
        return alert.get(text)
    given = ", ".join(alert.get(arguments) or [])
    return f"‹{alert[key]}›" + (f" with {given}" if given else "")


def apns_phone(entry):
    """The box of the phone that got this journal entry's push."""
    payload, headers = entry.get("payload", {}), entry["headers"]
    aps = payload.get("aps", {})
    alert = aps.get("alert", {})
    alert = {"body": alert} if isinstance(alert, str) else alert
    shown = [words(alert, "title", "title-loc-key", "title-loc-args"), words(alert, "body", "loc-key", "loc-args"),
             " · ".join(f"{name} {aps[name]}" for name in ("badge", "sound", "category", "thread-id") if name in aps)]
    data = {key: value for key, value in payload.items() if key != "aps"}
    options = [headers.get("apns-push-type", "?"), f"priority {headers.get('apns-priority', '10')}"]
    if "apns-collapse-id" in headers:
        options.append(f"replaces “{headers['apns-collapse-id']}”")
    return box("iPhone", list(filter(None, shown)), data, " · ".join(options) + f" · {entry['payload_size']} bytes")


def box(name, shown, data, footer, columns=44):
    """A phone and its notification, as lines of equal width: what the person sees, then what the app gets."""

    def rows(lines, begin="", end=""):
        return [f"│ {begin}{pad(part, columns)}{end} │" for line in lines for part in wrap(line, columns) or [""]]

    def rule(left, word, right):
        return f"{left}─ {word} " + "─" * (columns - width(word) - 1) + right

    data_lines = [f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
                  for key, value in data.items()]
    return [rule("╭", name, "╮"),
            *rows(shown[:1] or ["(nothing to see)"], BOLD if shown else DIM, PLAIN), *rows(shown[1:]),
            *([rule("├", "data for the app", "┤")] if data else []), *rows(data_lines, DIM, PLAIN),
            "╰" + "─" * (columns + 2) + "╯", f"  {DIM}{pad(footer, columns + 2)}{PLAIN}"]


def wrap(text, columns):
    """Wraps by columns, not characters: wide characters count twice."""
    lines, line = [], ""
    for word in text.split(" "):
        while width(word) > columns:
            cut = next(n for n in range(len(word), 0, -1) if width(word[:n]) <= columns)
            lines, line, word = lines + ([line] if line else []) + [word[:cut]], "", word[cut:]
        if line and width(line) + 1 + width(word) > columns:
            lines, line = lines + [line], word
        else:
            line = f"{line} {word}" if line else word
    return lines + ([line] if line else [])


def side_by_side(boxes):
    """Boxes next to each other, for one request that reaches several phones."""
    for row in itertools.zip_longest(*boxes, fillvalue=" " * 48):
        print("      " + "  ".join(row).rstrip())


# --- the whole story ---


def read_lines(path):
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def short(text):
    """A request on one or two lines, its device token cut: people compare beginnings."""
    for name, *_ in SCENES:
        text = text.replace(token(name), token(name)[:8] + "…")
    lines = textwrap.wrap(text, WIDTH - 11, max_lines=2, placeholder=" …", break_long_words=True)
    return "\n           ".join(lines)


def heading(text):
    print(f"\n{BOLD}{text}{PLAIN}")


def show(folder):
    journal = read_lines(folder / "journal.ndjson")
    feedback, dead = read_lines(folder / "feedback.ndjson"), read_lines(folder / "dead.ndjson")
    unaccounted = []

    heading("What was sent, and what the phone would get")
    for number, (name, meaning, given, _, expected) in enumerate(SCENES, 1):
        attempts = [entry for entry in journal if entry.get("token") == token(name)]
        print(f"\n  {BOLD}{number}. {name}{PLAIN}: {meaning}")
        print(f"      sent {DIM}{short(json.dumps(request(name, given), ensure_ascii=False))}{PLAIN}")
        for entry in attempts:
            status, reason = entry["answer"].get("status"), entry["answer"].get("reason", "")
            if status == 200:
                side_by_side([apns_phone(entry)])
            else:
                print(f"      {RED}APNs answers {status} {reason}{PLAIN}")
        ends = {
            "delivered": sum(entry["answer"].get("status") == 200 for entry in attempts),
            "feedback": sum(event["token"] == token(name) and event["event"] == "NotRegistered" for event in feedback),
            "dead": sum(token(name) in letter["body"] for letter in dead),
        }
        if ends != {**dict.fromkeys(ends, 0), expected: 1}:
            unaccounted.append(f"{name}: expected one {expected}, got {ends}")
    print(f"\n  {BOLD}{len(SCENES) + 1}. malformed{PLAIN}: published with amqp-publish")
    print(f"      sent {DIM}{MALFORMED}{PLAIN}")
    if sum(letter["body"] == MALFORMED for letter in dead) != 1:
        unaccounted.append("malformed: expected one dead letter")

    heading("Feedback: tokens to prune or to look at (push.feedback)")
    for event in feedback:
        since = f", invalid since {event['invalid_since']}" if event.get("invalid_since") else ""
        print(f"  {event['event']:<20} {event['token'][:8]}…  {event['status']} {event['reason']}{since}")

    heading("Dead letters: requests that will not be tried again (push.dead)")
    for letter in dead:
        headers = letter["properties"].get("headers", {})
        print(f"  {headers.get('x-push-error'):<20} {headers.get('x-push-reason')}")
        print(f"  {'':<20} {DIM}{short(letter['body'])}{PLAIN}")

    delivered = sum(entry["answer"].get("status") == 200 for entry in journal)
    retried = len(journal) - len({entry.get("token") for entry in journal})
    connections = len({entry["connection"] for entry in journal})
    heading("Summary")
    print(f"  {len(SCENES) + 1} requests published: {delivered} delivered, {len(feedback)} feedback events, {len(dead)} dead "
          f"letters; {len(journal)} pushes over {connections} connection, {retried} of them a retry")
    for line in unaccounted:
        print(f"  {RED}{line}{PLAIN}")
    if not unaccounted:
        print(f"  {GREEN}every request is accounted for{PLAIN}")
    return 1 if unaccounted else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "show"):
        sys.exit(__doc__)
    sys.exit({"prepare": prepare, "show": show}[sys.argv[1]](pathlib.Path(sys.argv[2])))
