#!/usr/bin/python3
"""The scenes of deploy/demo and how they are shown.

demo.py prepare FOLDER    writes requests/*.json and malformed (what is sent), devices.csv, change.json and gone.token (whom the
                          registry knows), first.ndjson to fourth.ndjson (what is sent to them), read.ndjson (what one of them
                          acknowledges between the last two), script.json (what the APNs simulator does with which device) and
                          service-account.json (around account.key)
demo.py show FOLDER       shows what came of it, from apns.ndjson, fcm.ndjson, feedback.ndjson, dead.ndjson, results.ndjson,
                          receipts.ndjson, campaigns.ndjson and campaigns.txt; exits 1 when a request is not accounted for
"""

import collections
import csv
import hashlib
import itertools
import json
import os
import pathlib
import sys
import textwrap
import time
import unicodedata

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Fixtures" / "requests"
WIDTH = 78

COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
BOLD, DIM, RED, GREEN, PLAIN = (f"\x1b[{code}m" if COLOUR else "" for code in (1, 2, 31, 32, 0))

BOTH, IPHONE, GONE, SUSPECT = "both phones", "iPhone", "feedback", "dead letter"
# Name, what it is to show, request (None: the fixture of that name), what the iPhone's token provokes, expected end.
SCENES = [
    ("seed000-notification", "a notification", None, None, BOTH),
    ("seed000-data", "data only, in the background", None, None, BOTH),
    ("seed000-hybrid", "notification and data", None, None, BOTH),
    ("seed000-priority", "normal priority", None, None, BOTH),
    ("seed000-ttl", "collapse key and three seconds to live", None, None, BOTH),
    ("seed004-both-systems", "localised text with arguments", None, None, BOTH),
    ("busy-device", "the provider refuses once, the second attempt gets through",
     {"notification": {"title": "Patience", "body": "The second attempt was enough."}},
     [{"status": 429, "reason": "TooManyRequests", "retry_after": 1}], IPHONE),
    ("app-removed", "the app is no longer installed",
     {"notification": {"body": "Anybody there?"}},
     {"status": 410, "reason": "Unregistered", "timestamp": 1732137600000}, GONE),
    ("wrong-environment", "a token of the other environment",
     {"notification": {"body": "Sent to the sandbox's token."}},
     {"status": 400, "reason": "BadDeviceToken"}, SUSPECT),
]
MALFORMED = '{"to": "apns:00", "notification": {"body": "cut short'

APP = "com.example.app"
# The registry's devices, all subscribed to the topic: name, platform, user.
IMPORTED = [("ada-phone", "apns", "ada"), ("ada-tablet", "fcm", "ada"), ("ben", "apns", "ben"), ("cleo", "fcm", ""),
            ("dora", "fcm", "dora"), ("emil", "apns", "")]
BY_QUEUE, BY_COMMAND = ("ada-old-phone", "fcm", "ada"), ("sold-phone", "apns", "")
DEVICES = [*IMPORTED, BY_QUEUE]
# Where `devices register` will print the registration to send to.
REGISTRATION = "REGISTRATION"
# What is sent to them: when, message id, target, text, who gets it.
SENDS = [
    ("first", "news-1", "/topics/news", "First snow.", DEVICES),
    ("first", "ada-1", "/users/ada", "Your parcel is here.", [device for device in DEVICES if device[2] == "ada"]),
    ("second", "news-2", "/topics/news", "It has melted.", DEVICES),
    ("second", "sold-1", REGISTRATION, "Still there?", []),
]

# A phone whose badge counts up until its owner reads: when, message id, the badge it gets.
COUNTED = ("ben", "apns", "ben")
BADGES = [("third", "chat-1", 1), ("third", "chat-2", 2), ("fourth", "chat-3", 1)]
READ = "chat-2"
# A Live Activity, by its own tokens: when, message id, event, whose token, the score.
ACTIVITY = [("third", "match-1", "start", "dora-start", 0), ("fourth", "match-2", "update", "dora-match", 1),
            ("fourth", "match-3", "end", "dora-match", 2)]


def apns_token(name):
    """A device token in Apple's form, the same in every run."""
    return hashlib.sha256(name.encode()).hexdigest()


def fcm_token(name):
    """A registration token in Google's form."""
    return f"c{apns_token(name)[:21]}:APA91b{apns_token(name)}"


def token_of(device):
    name, platform, _ = device
    return apns_token(name) if platform == "apns" else fcm_token(name)


def request(name, given, expected):
    """The scene's request, addressed to its phones."""
    if given is None:
        given = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    phones = [f"apns:{apns_token(name)}", f"fcm:{fcm_token(name)}"]
    target = {"registration_ids": phones} if expected == BOTH else {"to": phones[0]}
    return {**target, **{key: value for key, value in given.items() if key != "to"}}


def prepare(folder):
    requests = folder / "requests"
    requests.mkdir()
    script = {}
    for number, (name, _, given, provoked, expected) in enumerate(SCENES, 1):
        text = json.dumps(request(name, given, expected), ensure_ascii=False)
        (requests / f"{number}-{name}.json").write_text(text + "\n", encoding="utf-8")
        if provoked:
            script[apns_token(name)] = provoked
    prepare_registry(folder)
    script[token_of(BY_COMMAND)] = [{"status": 410, "reason": "Unregistered"}]
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    (folder / "malformed").write_text(MALFORMED, encoding="utf-8")
    account = {"type": "service_account", "project_id": "example", "private_key_id": "demo",
               "private_key": (folder / "account.key").read_text(), "client_email": "demo@example.iam.gserviceaccount.com",
               "token_uri": "https://oauth2.googleapis.com/token"}
    (folder / "service-account.json").write_text(json.dumps(account))


def prepare_registry(folder):
    with open(folder / "devices.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["platform", "token", "user", "topics"])
        rows.writerows([device[1], token_of(device), device[2], "news"] for device in IMPORTED)
    change = {"op": "register", "app": APP, "platform": BY_QUEUE[1], "token": token_of(BY_QUEUE), "user": BY_QUEUE[2],
              "topics": ["news"]}
    (folder / "change.json").write_text(json.dumps(change), encoding="utf-8")
    (folder / "gone.token").write_text(token_of(BY_COMMAND), encoding="utf-8")
    for when, name, target, text, _ in SENDS:
        publish(folder, when, name, {"to": target, "notification": {"body": text}})
    for when, name, _ in BADGES:
        publish(folder, when, name, {"to": f"/users/{COUNTED[2]}", "notification": {"body": f"{name}: hello", "badge": "auto"}})
    for when, name, event, token, score in ACTIVITY:
        publish(folder, when, name, {"to": f"apns:{apns_token(token)}", "apns": activity(event, score)})
    read = {"op": "read", "app": APP, "token": f"apns:{token_of(COUNTED)}", "message_id": READ, "badge_option": "reset"}
    (folder / "read.ndjson").write_text(json.dumps({"exchange": "push.acks", "routing_key": "ack", "body": read}) + "\n")


def publish(folder, when, name, body):
    message = {"body": body, "properties": {"app_id": APP, "message_id": name}}
    with open(folder / f"{when}.ndjson", "a", encoding="utf-8") as file:
        file.write(json.dumps(message) + "\n")


def activity(event, score):
    aps = {"timestamp": int(time.time()), "event": event, "content-state": {"goals": score}}
    if event == "start":
        aps |= {"attributes-type": "Match", "attributes": {"home": "Porto"}, "alert": {"title": "Kick-off"}}
    return {"headers": {"apns-push-type": "liveactivity", "apns-priority": "10"}, "payload": {"aps": aps}}


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
    """The box of the iPhone that got this journal entry's push."""
    payload, headers = entry["payload"] or {}, entry["headers"]
    aps = payload.get("aps", {})
    alert = aps.get("alert", {})
    alert = {"body": alert} if isinstance(alert, str) else alert
    shown = [words(alert, "title", "title-loc-key", "title-loc-args"), words(alert, "body", "loc-key", "loc-args"),
             " · ".join(f"{name} {aps[name]}" for name in ("badge", "sound", "category", "thread-id") if name in aps)]
    options = [headers.get("apns-push-type", "?"), f"priority {headers.get('apns-priority', '10')}"]
    if "apns-collapse-id" in headers:
        options.append(f"replaces “{headers['apns-collapse-id']}”")
    return box("iPhone", shown, {key: value for key, value in payload.items() if key != "aps"}, options)


def fcm_phone(entry):
    """The box of the Android phone that got this journal entry's push."""
    message = entry["payload"]["message"]
    android = message.get("android", {})
    notification = {**message.get("notification", {}), **android.get("notification", {})}
    shown = [words(notification, "title", "title_loc_key", "title_loc_args"),
             words(notification, "body", "body_loc_key", "body_loc_args"),
             " · ".join(f"{name} {notification[name]}" for name in ("icon", "color", "sound", "tag") if name in notification)]
    options = [f"priority {android.get('priority', 'normal').lower()}"]
    if "collapse_key" in android:
        options.append(f"replaces “{android['collapse_key']}”")
    if "ttl" in android:
        options.append(f"lives {android['ttl']}")
    return box("Android", shown, message.get("data", {}), options)


def box(name, shown, data, options, columns=32):
    """A phone and its notification, as lines of equal width: what the person sees, then what the app gets."""

    def rows(lines, begin="", end=""):
        return [f"│ {begin}{pad(part, columns)}{end} │" for line in lines for part in wrap(line, columns) or [""]]

    def rule(left, word, right):
        return f"{left}─ {word} " + "─" * (columns - width(word) - 1) + right

    shown = list(filter(None, shown))
    data_lines = [f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
                  for key, value in data.items()]
    return [rule("╭", name, "╮"),
            *rows(shown[:1] or ["(nothing to see)"], BOLD if shown else DIM, PLAIN), *rows(shown[1:]),
            *([rule("├", "data for the app", "┤")] if data else []), *rows(data_lines, DIM, PLAIN),
            "╰" + "─" * (columns + 2) + "╯",
            *[f"  {DIM}{pad(line, columns + 2)}{PLAIN}" for line in wrap(" · ".join(options), columns + 2)]]


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
    for row in itertools.zip_longest(*boxes, fillvalue=" " * 36):
        print("    " + "  ".join(row).rstrip())


# --- the whole story ---


def read_lines(path):
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def short(text):
    """A request on one or two lines, its device tokens cut: people compare beginnings."""
    for name, *_ in SCENES:
        for token in (fcm_token(name), apns_token(name)):
            text = text.replace(token, token[:8] + "…")
    return "\n         ".join(textwrap.wrap(text, WIDTH - 9, max_lines=2, placeholder=" …", break_long_words=True))


def heading(text):
    print(f"\n{BOLD}{text}{PLAIN}")


def show_scene(number, scene, pushes):
    name, meaning, given, _, expected = scene
    print(f"\n  {BOLD}{number}. {name}{PLAIN}: {meaning}")
    print(f"    sent {DIM}{short(json.dumps(request(name, given, expected), ensure_ascii=False))}{PLAIN}")
    boxes = []
    for phone, token in ((apns_phone, apns_token(name)), (fcm_phone, fcm_token(name))):
        for entry in (entry for entry in pushes if entry.get("token") == token):
            answer = entry["answer"]
            if answer.get("status") == 200:
                boxes.append(phone(entry))
            else:
                print(f"    {RED}the provider answers {answer.get('status')} {answer.get('reason', '')}{PLAIN}")
    side_by_side(boxes)


def ends(name, pushes, feedback, dead):
    """Where a scene's request ended, in the words of SCENES, each as often as it did."""
    got = {entry["token"] for entry in pushes if entry["answer"].get("status") == 200}
    found = [BOTH] if {apns_token(name), fcm_token(name)} <= got else [IPHONE] if apns_token(name) in got else []
    found += [GONE for event in feedback if event["token"] == apns_token(name) and event["event"] == "NotRegistered"]
    return found + [SUSPECT for letter in dead if apns_token(name) in letter["body"]]


def body_of(entry):
    """The text of the notification that this journal entry's push carries."""
    payload = entry["payload"] or {}
    if "message" in payload:
        return payload["message"].get("notification", {}).get("body")
    alert = payload.get("aps", {}).get("alert")
    return alert.get("body") if isinstance(alert, dict) else alert


def counted(tokens):
    """`2 iPhones and 1 Android`"""
    platforms = {token_of(device): device[1] for device in [*DEVICES, BY_COMMAND]}
    counts = collections.Counter(platforms[token] for token in tokens)
    named = [f"{counts[platform]} {word}{'s' * (counts[platform] != 1)}"
             for platform, word in (("apns", "iPhone"), ("fcm", "Android")) if counts[platform]]
    return " and ".join(named)


def show_registry(folder, pushes, results, feedback):
    """The registry's devices and what was sent to them; returns what is unaccounted for."""
    unaccounted = []
    gone = token_of(BY_COMMAND)
    heading("A topic, a user, and a phone that is gone: devices in the registry")
    print(f"  {counted(map(token_of, [*DEVICES, BY_COMMAND]))}: {len(IMPORTED)} by `devices import`, "
          "1 by `devices register`,\n  1 by a message on push.registry\n")
    for number, (_, name, target, text, expected) in enumerate(SENDS, len(SCENES) + 2):
        shown = "pf1r~…" if target == REGISTRATION else target
        given = json.dumps({"to": shown, "notification": {"body": text}}, ensure_ascii=False)
        print(f"  {BOLD}{number}. {name}{PLAIN} {DIM}{given}{PLAIN}")
        sent = [(entry["token"], entry["answer"].get("status") == 200) for entry in pushes if body_of(entry) == text]
        delivered, refused = ([token for token, got in sent if got is wanted] for wanted in (True, False))
        if delivered:
            print(f"    {counted(delivered)} got it")
        if refused:
            print(f"    {RED}{counted(refused)}: 410 Unregistered, gone from now on{PLAIN}")
        errors = [one["error"] for one in results.get(name, [{}])[0].get("results", []) if "error" in one]
        if errors:
            print(f"    {', '.join(errors)}{'' if sent else ', without asking the provider'}")
        if sorted(delivered) != sorted(map(token_of, expected)) or refused != [gone] * (name == "news-1"):
            unaccounted.append(f"{name}: expected {len(expected)} devices, reached {len(delivered)}, {len(refused)} refused")
        if len(results.get(name, [])) != 1 or errors != ["NotRegistered"] * (target == REGISTRATION):
            unaccounted.append(f"{name}: expected one result, got {results.get(name)}")

    print(f"\n  {DIM}pushfleet campaigns{PLAIN}")
    print(textwrap.indent((folder / "campaigns.txt").read_text(encoding="utf-8").rstrip(), "  "))
    campaigns = {one["message_id"]: (one["state"], one["sent"], one["failed"])
                 for one in read_lines(folder / "campaigns.ndjson")}
    expected = {"news-1": ("completed", len(DEVICES), 1), "news-2": ("completed", len(DEVICES), 0)}
    if campaigns != expected:
        unaccounted.append(f"campaigns: expected {expected}, got {campaigns}")
    events = [event["event"] for event in feedback if event["token"] == gone]
    if events != ["NotRegistered"] * 2:
        unaccounted.append(f"{BY_COMMAND[0]}: expected two feedback events NotRegistered, got {events}")
    return unaccounted


def show_badges(folder, pushes):
    """A badge that counts up until its owner reads; returns what is unaccounted for."""
    unaccounted = []
    heading("A badge that counts up, and what was read (push.acks, push.receipts)")
    for _, name, expected in BADGES:
        got = [entry["payload"]["aps"].get("badge") for entry in pushes if body_of(entry) == f"{name}: hello"]
        print(f"  {BOLD}{name}{PLAIN} {DIM}\"badge\": \"auto\"{PLAIN}: badge {', '.join(map(str, got))}")
        if got != [expected]:
            unaccounted.append(f"{name}: expected the badge {expected}, got {got}")
        if name == READ:
            receipts = [json.loads(one["body"]) for one in read_lines(folder / "receipts.ndjson")]
            for receipt in receipts:
                print(f"    {receipt['event']} by {receipt['user']}: badge {receipt['badge']}")
            if [(one["event"], one["message_id"], one["badge"]) for one in receipts] != [("Read", READ, 0)]:
                unaccounted.append(f"{READ}: expected one receipt, got {receipts}")
    return unaccounted


def show_activity(pushes):
    """A Live Activity from start to end; returns what is unaccounted for."""
    heading("A Live Activity, by its own tokens")
    found = []
    for entry in pushes:
        aps = (entry["payload"] or {}).get("aps", {})
        if "content-state" in aps:
            found.append((aps["event"], entry["token"], aps["content-state"]["goals"]))
            print(f"  {aps['event']:<8} {entry['token'][:8]}…  {json.dumps(aps['content-state'])}  "
                  f"{DIM}{entry['headers']['apns-push-type']}, {entry['headers']['apns-topic']}{PLAIN}")
    expected = [(event, apns_token(token), score) for _, _, event, token, score in ACTIVITY]
    return [] if found == expected else [f"Live Activity: expected {expected}, got {found}"]


def show(folder):
    journals = [read_lines(folder / f"{provider}.ndjson") for provider in ("apns", "fcm")]
    pushes = [entry for journal in journals for entry in journal if entry.get("path") != "/token" and entry.get("token")]
    feedback, dead = read_lines(folder / "feedback.ndjson"), read_lines(folder / "dead.ndjson")
    results = collections.defaultdict(list)
    for result in read_lines(folder / "results.ndjson"):
        results[result["properties"]["message_id"]].append(json.loads(result["body"]))
    unaccounted = []

    heading("What was sent, and what the phones would get")
    for number, scene in enumerate(SCENES, 1):
        show_scene(number, scene, pushes)
        found = ends(scene[0], pushes, feedback, dead)
        if found != [scene[-1]]:
            unaccounted.append(f"{scene[0]}: expected to end at {scene[-1]}, ended at {found or 'nothing'}")
    print(f"\n  {BOLD}{len(SCENES) + 1}. malformed{PLAIN}: published with amqp-publish")
    print(f"    sent {DIM}{MALFORMED}{PLAIN}")
    if sum(letter["body"] == MALFORMED for letter in dead) != 1:
        unaccounted.append("malformed: expected one dead letter")

    unaccounted += show_registry(folder, pushes, results, feedback)
    unaccounted += show_badges(folder, pushes)
    unaccounted += show_activity(pushes)

    heading("Feedback: tokens to prune or to look at (push.feedback)")
    for event in feedback:
        since = f", since {event['invalid_since']}" if event.get("invalid_since") else ""
        print(f"  {event['event']:<20} {event['token'][:8]}…  {event['status'] or 'not asked:'} {event['reason']}{since}")

    heading("Dead letters: requests that will not be tried again (push.dead)")
    for letter in dead:
        headers = letter["properties"].get("headers", {})
        print(f"  {headers.get('x-push-error'):<20} {headers.get('x-push-reason')}\n    {DIM}{short(letter['body'])}{PLAIN}")

    accepted = sum(entry["answer"].get("status") == 200 for entry in pushes)
    again = len(pushes) - len({(entry["token"], body_of(entry), entry["headers"].get("apns-id")) for entry in pushes})
    heading("Summary")
    print(f"  {len(SCENES) + 1 + len(SENDS) + len(BADGES) + len(ACTIVITY)} requests published: {len(pushes)} pushes, {again} of them a second attempt, "
          f"{accepted} accepted by APNs and FCM;\n  {len(feedback)} feedback events, {len(dead)} dead letters")
    for line in unaccounted:
        print(f"  {RED}{line}{PLAIN}")
    if not unaccounted:
        print(f"  {GREEN}every request is accounted for{PLAIN}")
    return 1 if unaccounted else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "show"):
        sys.exit(__doc__)
    sys.exit({"prepare": prepare, "show": show}[sys.argv[1]](pathlib.Path(sys.argv[2])))
