#!/usr/bin/python3
"""The requests of deploy/demo, and a report on what became of them.

demo.py scripts FOLDER    writes apns-script.json and webpush-script.json, the scripts of the simulators
demo.py prepare FOLDER    writes requests/*.json and malformed (the requests), devices.csv, change.json and gone.token (the
                          registered devices), first.ndjson to fourth.ndjson (the requests to them), read.ndjson (an
                          acknowledgement before the last requests) and service-account.json. Reads browsers.ndjson (the
                          subscriptions of the web push simulator) and account.key
demo.py show FOLDER       prints the outcomes from apns.ndjson, fcm.ndjson, webpush.ndjson, feedback.ndjson, dead.ndjson,
                          results.ndjson, receipts.ndjson, campaigns.ndjson and campaigns.txt; exits 1 if a request is not
                          accounted for
"""

import base64
import collections
import csv
import hashlib
import itertools
import json
import os
import pathlib
import re
import sys
import textwrap
import time
import typing
import unicodedata

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Fixtures" / "requests"
WIDTH = 78

COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
BOLD, DIM, RED, GREEN, PLAIN = (f"\x1b[{code}m" if COLOUR else "" for code in (1, 2, 31, 32, 0))

DEVICE = {"apns": "iPhone", "fcm": "Android", "webpush": "browser"}
PROVIDER = {"apns": "APNs", "fcm": "FCM", "webpush": "web push"}
# By the path of the endpoint at the simulator.
BROWSER = {"/fcm/": "Chrome", "/wpush/": "Firefox", "/apple/": "Safari", "/w/": "Edge", "/up/": "UnifiedPush"}

DELIVERED, FEEDBACK, DEAD_LETTER = "delivery", "feedback", "dead letter"


class Scene(typing.NamedTuple):
    """A request to devices that aren't registered, one of each platform."""

    name: str
    meaning: str
    end: str = DELIVERED
    platforms: tuple = ("apns", "fcm", "webpush")
    given: dict | None = None  # None: the fixture of this name
    answer: dict | list | None = None  # the simulator's; None: it accepts the push

    def tokens(self):
        return [token_of((self.name, platform, "")) for platform in self.platforms]


SCENES = [
    Scene("seed000-notification", "a notification"),
    Scene("seed000-data", "data for the app, without a notification"),
    Scene("seed000-hybrid", "a notification with data"),
    Scene("seed000-priority", "normal priority"),
    Scene("seed000-ttl", "a collapse key, and a lifetime of three seconds"),
    Scene("seed004-both-systems", "a text that the app translates"),
    Scene("busy-device", "APNs refuses the first attempt and accepts the second", DELIVERED, ("apns",),
          {"notification": {"title": "Train 12", "body": "The train is five minutes late."}},
          [{"status": 429, "reason": "TooManyRequests", "retry_after": 1}]),
    Scene("app-removed", "the user has removed the app", FEEDBACK, ("apns",),
          {"notification": {"body": "You have one new message."}},
          {"status": 410, "reason": "Unregistered", "timestamp": 1732137600000}),
    Scene("unsubscribed", "the browser has ended its subscription", FEEDBACK, ("webpush",),
          {"notification": {"title": "Mail", "body": "You have one new mail."}}, {"status": 410}),
    Scene("wrong-environment", "the token belongs to the sandbox", DEAD_LETTER, ("apns",),
          {"notification": {"body": "You have one new comment."}}, {"status": 400, "reason": "BadDeviceToken"}),
]
MALFORMED = '{"to": "apns:00", "notification": {"body": "cut short'

APP = "com.example.app"
# The registered devices, all subscribed to the topic: name, platform, user.
IMPORTED = [("ada-phone", "apns", "ada"), ("ada-tablet", "fcm", "ada"), ("ada-laptop", "webpush", "ada"),
            ("ben", "apns", "ben"), ("cleo", "fcm", ""), ("dora", "fcm", "dora"), ("emil", "apns", ""),
            ("fay", "webpush", "fay")]
BY_QUEUE, BY_COMMAND = ("ada-old-phone", "fcm", "ada"), ("sold-phone", "apns", "")
DEVICES = [*IMPORTED, BY_QUEUE]
# Each has the subscription with the number of its place here.
BROWSERS = [name for name, platform, _ in IMPORTED if platform == "webpush"]
BROWSERS += [scene.name for scene in SCENES if "webpush" in scene.platforms]
# Replaced by the registration that `devices register` prints.
REGISTRATION = "REGISTRATION"
# The requests to them: time, message id, target, text, expected devices.
SENDS = [
    ("first", "news-1", "/topics/news", "Snow tonight.", DEVICES),
    ("first", "ada-1", "/users/ada", "Your parcel is here.", [device for device in DEVICES if device[2] == "ada"]),
    ("second", "news-2", "/topics/news", "No snow tonight.", DEVICES),
    ("second", "sold-1", REGISTRATION, "You have an offer.", []),
]

# A phone with a badge: time, message id, expected badge. Its owner reads one message, which sets the badge to 0.
COUNTED = ("ben", "apns", "ben")
BADGES = [("third", "chat-1", 1), ("third", "chat-2", 2), ("fourth", "chat-3", 1)]
READ = "chat-2"
# A Live Activity with its tokens: time, message id, event, name of the token, score.
ACTIVITY = [("third", "match-1", "start", "dora-start", 0), ("fourth", "match-2", "update", "dora-match", 1),
            ("fourth", "match-3", "end", "dora-match", 2)]


def apns_token(name):
    """A device token in Apple's format, the same in every run."""
    return hashlib.sha256(name.encode()).hexdigest()


def token_of(device):
    """The device in journals: its token, or the id of its subscription at the simulator."""
    name, platform, _ = device
    if platform == "apns":
        return apns_token(name)
    if platform == "fcm":
        return f"c{apns_token(name)[:21]}:APA91b{apns_token(name)}"
    return f"subscription-{BROWSERS.index(name) + 1}"


def in_journals(token):
    """The same for a token of a feedback event, which names a browser by its endpoint."""
    return re.split("[/=]", token)[-1]


def subscription_of(name, folder):
    """The browser's subscription, as JavaScript has it."""
    return read_lines(folder / "browsers.ndjson")[BROWSERS.index(name)]["subscription"]


def target(name, platform, folder):
    """The device as a target that needs no registry."""
    if platform != "webpush":
        return f"{platform}:{token_of((name, platform, ''))}"
    subscription = json.dumps(subscription_of(name, folder)).encode()
    return f"webpush:{base64.urlsafe_b64encode(subscription).decode().rstrip('=')}"


def request(scene, folder):
    """The scene's request, addressed to its devices."""
    given = scene.given or json.loads((FIXTURES / f"{scene.name}.json").read_text(encoding="utf-8"))
    targets = [target(scene.name, platform, folder) for platform in scene.platforms]
    to = {"registration_ids": targets} if len(targets) > 1 else {"to": targets[0]}
    return {**to, **{key: value for key, value in given.items() if key != "to"}}


def request_file(number, scene, folder):
    return folder / "requests" / f"{number:02}-{scene.name}.json"


def scripts(folder):
    answers = {token_of(BY_COMMAND): [{"status": 410, "reason": "Unregistered"}]}
    answers |= {token: scene.answer for scene in SCENES if scene.answer for token in scene.tokens()}
    subscriptions = {token for token in answers if token.startswith("subscription-")}
    for provider, tokens in (("apns", answers.keys() - subscriptions), ("webpush", subscriptions)):
        script = json.dumps({token: answers[token] for token in tokens})
        (folder / f"{provider}-script.json").write_text(script, encoding="utf-8")


def prepare(folder):
    (folder / "requests").mkdir()
    for number, scene in enumerate(SCENES, 1):
        text = json.dumps(request(scene, folder), ensure_ascii=False)
        request_file(number, scene, folder).write_text(text + "\n", encoding="utf-8")
    prepare_registry(folder)
    (folder / "malformed").write_text(MALFORMED, encoding="utf-8")
    account = {"type": "service_account", "project_id": "example", "private_key_id": "demo",
               "private_key": (folder / "account.key").read_text(), "client_email": "demo@example.iam.gserviceaccount.com",
               "token_uri": "https://oauth2.googleapis.com/token"}
    (folder / "service-account.json").write_text(json.dumps(account))


def columns(device, folder):
    """The device's row in devices.csv."""
    name, platform, user = device
    row = {"platform": platform, "user": user, "topics": "news"}
    if platform != "webpush":
        return row | {"token": token_of(device)}
    subscription = subscription_of(name, folder)
    return row | {"endpoint": subscription["endpoint"], **subscription["keys"]}


def prepare_registry(folder):
    with open(folder / "devices.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, ["platform", "token", "endpoint", "p256dh", "auth", "user", "topics"])
        rows.writeheader()
        rows.writerows(columns(device, folder) for device in IMPORTED)
    change = {"op": "register", "app": APP, "platform": BY_QUEUE[1], "token": token_of(BY_QUEUE), "user": BY_QUEUE[2],
              "topics": ["news"]}
    (folder / "change.json").write_text(json.dumps(change), encoding="utf-8")
    (folder / "gone.token").write_text(token_of(BY_COMMAND), encoding="utf-8")
    for when, name, to, text, _ in SENDS:
        publish(folder, when, name, {"to": to, "notification": {"body": text}})
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


# --- the devices' screens ---


def width(text):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
               for character in text)


def pad(text, columns):
    return text + " " * max(0, columns - width(text))


def words(alert, text, key, arguments):
    """The text, or the localisation key with its arguments, which the app looks up."""
    if key not in alert:
        return alert.get(text)
    given = ", ".join(alert.get(arguments) or [])
    return f"‹{alert[key]}›" + (f" with {given}" if given else "")


def apns_phone(entry):
    """The iPhone that got this journal entry's push."""
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
    """The Android phone that got this journal entry's push."""
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


def browser(entry):
    """The browser that got this journal entry's push."""
    payload, headers = entry["payload"] or {}, entry["headers"]
    notification = payload.get("notification", {})
    shown = [notification.get("title"), notification.get("body"),
             " · ".join(f"{name} {notification[name]}" for name in ("app_badge", "tag", "navigate") if name in notification)]
    options = [f"urgency {headers.get('urgency', 'normal')}"]
    if "topic" in headers:
        options.append(f"topic “{headers['topic'][:8]}…”")
    options.append(f"lives {headers['ttl']}s")
    name = next(name for path, name in BROWSER.items() if entry["path"].startswith(path))
    return box(name, shown, payload.get("data", {}), options)


DRAW = {"apns": apns_phone, "fcm": fcm_phone, "webpush": browser}


def box(name, shown, data, options, columns=20):
    """Draws a device with lines of equal width: the visible notification, then the data for the app."""

    def rows(lines, begin="", end=""):
        return [f"│ {begin}{pad(part, columns)}{end} │" for line in lines for part in wrap(line, columns) or [""]]

    def rule(left, word, right):
        return f"{left}─ {word} " + "─" * (columns - width(word) - 1) + right

    shown = list(filter(None, shown))
    unbroken = " · ".join(option.replace(" ", "\u00a0") for option in options)
    data_lines = [f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
                  for key, value in data.items()]
    return [rule("╭", name, "╮"),
            *rows(shown[:1] or ["(no notification)"], BOLD if shown else DIM, PLAIN), *rows(shown[1:]),
            *([rule("├", "data for the app", "┤")] if data else []), *rows(data_lines, DIM, PLAIN),
            "╰" + "─" * (columns + 2) + "╯",
            *[f"  {DIM}{pad(line, columns + 2)}{PLAIN}" for line in wrap(unbroken, columns + 2)]]


def wrap(text, columns):
    """Wraps by columns, not characters, because wide characters take two columns."""
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
    """Prints the devices that a request reached next to each other."""
    for row in itertools.zip_longest(*boxes, fillvalue=" " * 24):
        print("    " + " ".join(row).rstrip())


# --- the report ---


def read_lines(path):
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def short(text):
    """A request on at most three lines, with the beginnings of its device tokens."""
    text = re.sub('((?:apns|fcm|webpush):[^"]{8})[^"]+', r"\1…", text)
    return "\n         ".join(textwrap.wrap(text, WIDTH - 9, max_lines=3, placeholder=" …", break_long_words=True))


def short_token(token):
    """The beginning of a token, or the end of an endpoint."""
    return f"https://…{token[token.index('/', 8):]}" if token.startswith("https://") else f"{token[:8]}…"


def heading(text):
    print(f"\n{BOLD}{text}{PLAIN}")


def is_accepted(entry):
    return 200 <= entry["answer"].get("status", 0) < 300


def show_scene(number, scene, folder, pushes):
    print(f"\n  {BOLD}{number}. {scene.name}{PLAIN}: {scene.meaning}")
    print(f"    sent {DIM}{short(request_file(number, scene, folder).read_text(encoding='utf-8').strip())}{PLAIN}")
    boxes = []
    for platform, token in zip(scene.platforms, scene.tokens()):
        for entry in (entry for entry in pushes if entry["token"] == token):
            if is_accepted(entry):
                boxes.append(DRAW[platform](entry))
            else:
                answer = entry["answer"]
                print(f"    {RED}{PROVIDER[platform]} answers {answer.get('status')} {answer.get('reason', '')}{PLAIN}")
    side_by_side(boxes)


def ends(scene, pushes, feedback, dead):
    """The ends of a scene's request, with repeats."""
    tokens = set(scene.tokens())
    found = [DELIVERED] if tokens <= {entry["token"] for entry in pushes if is_accepted(entry)} else []
    found += [FEEDBACK for event in feedback if in_journals(event["token"]) in tokens and event["event"] == "NotRegistered"]
    return found + [DEAD_LETTER for letter in dead if any(token in letter["body"] for token in tokens)]


def body_of(entry):
    """The text of the notification in a journal entry."""
    payload = entry["payload"] or {}
    if "message" in payload:
        return payload["message"].get("notification", {}).get("body")
    if "notification" in payload:
        return payload["notification"].get("body")
    alert = payload.get("aps", {}).get("alert")
    return alert.get("body") if isinstance(alert, dict) else alert


def listed(words):
    """`A, B and C`"""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def counted(tokens):
    """`2 iPhones, 1 Android and 1 browser`"""
    platforms = {token_of(device): device[1] for device in [*DEVICES, BY_COMMAND]}
    counts = collections.Counter(platforms[token] for token in tokens)
    return listed(f"{counts[platform]} {word}{'s' * (counts[platform] != 1)}" for platform, word in DEVICE.items()
                  if counts[platform])


def show_registry(folder, pushes, results, feedback):
    """Prints the registered devices and the requests to them. Returns failures."""
    unaccounted = []
    gone = token_of(BY_COMMAND)
    heading("Requests to registered devices: a topic, a user and a single device")
    print(f"  {counted(map(token_of, [*DEVICES, BY_COMMAND]))} are registered: {len(IMPORTED)} by `devices import`,\n"
          "  1 by `devices register`, 1 by a message to push.registry\n")
    for number, (_, name, to, text, expected) in enumerate(SENDS, len(SCENES) + 2):
        given = json.dumps({"to": "pf1r~…" if to == REGISTRATION else to, "notification": {"body": text}}, ensure_ascii=False)
        print(f"  {BOLD}{number}. {name}{PLAIN} {DIM}{given}{PLAIN}")
        sent = [(entry["token"], is_accepted(entry)) for entry in pushes if body_of(entry) == text]
        delivered, refused = ([token for token, got in sent if got is wanted] for wanted in (True, False))
        if delivered:
            print(f"    {counted(delivered)} got it")
        if refused:
            print(f"    {RED}{counted(refused)}: APNs answers 410 Unregistered; the registry marks it as gone{PLAIN}")
        result = results[name][0] if results[name] else {}
        counts = result.get("success"), result.get("failure")
        errors = [one["error"] for one in result.get("results", []) if "error" in one]
        reasons = [f"{one['error']} ({one.get('platform')})" for one in result.get("failures", [])] + errors
        print(f"    result: success {counts[0]}, failure {counts[1]}{': ' * bool(reasons)}{', '.join(reasons)}"
              f"{'' if sent else '; nothing was sent'}")
        if sorted(delivered) != sorted(map(token_of, expected)) or refused != [gone] * (name == "news-1"):
            unaccounted.append(f"{name}: expected {len(expected)} devices, reached {len(delivered)}, {len(refused)} refused")
        failures = len(refused) + (to == REGISTRATION)
        if len(results[name]) != 1 or counts != (len(expected), failures) or errors != ["NotRegistered"] * (to == REGISTRATION):
            unaccounted.append(f"{name}: expected one result, {len(expected)} successes and {failures} failures, "
                               f"got {results[name]}")

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
    """Prints the badges and the receipt. Returns failures."""
    unaccounted = []
    heading("Badges and receipts (push.acks, push.receipts)")
    for _, name, expected in BADGES:
        got = [entry["payload"]["aps"].get("badge") for entry in pushes if body_of(entry) == f"{name}: hello"]
        print(f"  {BOLD}{name}{PLAIN} {DIM}\"badge\": \"auto\"{PLAIN}: badge {', '.join(map(str, got))}")
        if got != [expected]:
            unaccounted.append(f"{name}: expected the badge {expected}, got {got}")
        if name == READ:
            receipts = [json.loads(one["body"]) for one in read_lines(folder / "receipts.ndjson")]
            for receipt in receipts:
                print(f"    {receipt['user']} reads it: receipt {receipt['event']}, badge {receipt['badge']}")
            if [(one["event"], one["message_id"], one["badge"]) for one in receipts] != [("Read", READ, 0)]:
                unaccounted.append(f"{READ}: expected one receipt, got {receipts}")
    return unaccounted


def show_activity(pushes):
    """Prints a Live Activity from start to end. Returns failures."""
    heading("A Live Activity")
    found = []
    for entry in pushes:
        aps = (entry["payload"] or {}).get("aps", {})
        if "content-state" in aps:
            found.append((aps["event"], entry["token"], aps["content-state"]["goals"]))
            print(f"  {aps['event']:<8} {entry['token'][:8]}…  {json.dumps(aps['content-state'])}  "
                  f"{DIM}{entry['headers']['apns-push-type']}, {entry['headers']['apns-topic']}{PLAIN}")
    expected = [(event, apns_token(token), score) for _, _, event, token, score in ACTIVITY]
    return [] if found == expected else [f"Live Activity: expected {expected}, got {found}"]


def show_feedback(feedback):
    heading("Feedback: tokens to delete or to check (push.feedback)")
    for event in feedback:
        since = f", since {event['invalid_since'][:10]}" if event.get("invalid_since") else ""
        print(f"  {event['event']:<20} {short_token(event['token'])}  "
              f"{event['status'] or 'not asked:'} {event['reason']}{since}")


def show_dead_letters(dead):
    heading("Dead letters: requests that failed (push.dead)")
    for letter in dead:
        headers = letter["properties"].get("headers", {})
        print(f"  {headers.get('x-push-error'):<20} {headers.get('x-push-reason')}\n    {DIM}{short(letter['body'])}{PLAIN}")


def show_summary(journals, feedback, dead):
    pushes = list(itertools.chain(*journals.values()))
    again = len(pushes) - len({(entry["token"], body_of(entry), entry["headers"].get("apns-id")) for entry in pushes})
    accepted = listed(f"{PROVIDER[platform]} {sum(map(is_accepted, journal))}" for platform, journal in journals.items())
    heading("Summary")
    print(f"  {len(SCENES) + 1 + len(SENDS) + len(BADGES) + len(ACTIVITY)} requests, {len(pushes)} pushes "
          f"(second attempts: {again}), {len(feedback)} feedback events, {len(dead)} dead letters\n"
          f"  accepted pushes: {accepted}")


def show(folder):
    journals = {platform: [entry for entry in read_lines(folder / f"{platform}.ndjson")
                           if entry.get("path") != "/token" and entry.get("token")] for platform in DEVICE}
    pushes = list(itertools.chain(*journals.values()))
    feedback, dead = read_lines(folder / "feedback.ndjson"), read_lines(folder / "dead.ndjson")
    results = collections.defaultdict(list)
    for result in read_lines(folder / "results.ndjson"):
        results[result["properties"]["message_id"]].append(json.loads(result["body"]))
    unaccounted = []

    heading("Requests, and what the devices got")
    for number, scene in enumerate(SCENES, 1):
        show_scene(number, scene, folder, pushes)
        found = ends(scene, pushes, feedback, dead)
        if found != [scene.end]:
            unaccounted.append(f"{scene.name}: expected {scene.end}, got {found or 'nothing'}")
    print(f"\n  {BOLD}{len(SCENES) + 1}. malformed{PLAIN}: sent with amqp-publish")
    print(f"    sent {DIM}{MALFORMED}{PLAIN}")
    if sum(letter["body"] == MALFORMED for letter in dead) != 1:
        unaccounted.append("malformed: expected one dead letter")

    unaccounted += show_registry(folder, pushes, results, feedback)
    unaccounted += show_badges(folder, pushes)
    unaccounted += show_activity(pushes)
    show_feedback(feedback)
    show_dead_letters(dead)
    show_summary(journals, feedback, dead)
    for line in unaccounted:
        print(f"  {RED}{line}{PLAIN}")
    if not unaccounted:
        print(f"  {GREEN}every request is accounted for{PLAIN}")
    return 1 if unaccounted else 0


VERBS = {"scripts": scripts, "prepare": prepare, "show": show}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in VERBS:
        sys.exit(__doc__)
    sys.exit(VERBS[sys.argv[1]](pathlib.Path(sys.argv[2])))
