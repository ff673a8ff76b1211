"""The devices of all platforms. The providers always refuse some of them."""

import base64
import hashlib
import json

APP, PROJECT, TOPIC = "com.example.app", "example", "everybody"
# Number of browsers; the other numbers are the fleet's.
BROWSERS = 600

# Of each hundred devices of a platform, these are refused; all others are reached.
GONE, SUSPECT, REFUSED = range(0, 4), range(4, 6), range(6, 7)
# The simulators' answers to them.
ANSWERS = {
    ("apns", "gone"): {"status": 410, "reason": "Unregistered"},
    ("apns", "suspect"): {"status": 400, "reason": "BadDeviceToken"},
    ("apns", "refused"): {"status": 400, "reason": "BadCollapseId"},
    ("fcm", "gone"): {"status": 404, "reason": "UNREGISTERED"},
    ("fcm", "suspect"): {"status": 403, "reason": "SENDER_ID_MISMATCH"},
    ("fcm", "refused"): {"status": 400, "reason": "INVALID_ARGUMENT"},
    ("webpush", "gone"): {"status": 410},
    ("webpush", "suspect"): {"status": 403, "reason": "VapidPkHashMismatch"},
    ("webpush", "refused"): {"status": 413},
}


def nature_of(kind):
    return "gone" if kind in GONE else "suspect" if kind in SUSPECT else "refused" if kind in REFUSED else "good"


class Device:
    """A phone. `key`: its name in scripts and journals; `target`: its name in requests; `nature`: its provider's constant answer (`good`:
    delivered)."""

    def __init__(self, family, number):
        name = hashlib.sha256(f"{family} {number}".encode()).hexdigest()
        self.platform = "apns" if number % 2 == 0 else "fcm"
        self.token = name if self.platform == "apns" else f"c{name[:21]}:APA91b{name}"
        self.key, self.target = self.token, f"{self.platform}:{self.token}"
        self.nature = nature_of(number // 2 % 100)


class Browser:
    """A browser, like a phone. Its token is its endpoint, which the simulator decides."""

    platform = "webpush"

    def __init__(self, number):
        self.key, self.nature = f"subscription-{number}", nature_of(number % 100)
        self.token = self.target = self.subscription = None

    def subscribe(self, subscription):
        self.subscription, self.token = subscription, subscription["endpoint"]
        self.target = "webpush:" + base64.urlsafe_b64encode(json.dumps(subscription).encode()).rstrip(b"=").decode()


def endpoint_of(target):
    """The endpoint of a browser that a request or a dead letter names."""
    text = target.partition(":")[2]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))["endpoint"]


class Devices:
    """`raw` devices are named by provider tokens and not registered. `members` are registered and subscribed to the topic. Every third
    browser is a member."""

    def __init__(self, raw, members, browsers):
        self.browsers = [Browser(number) for number in range(1, browsers + 1)]
        self.raw = [Device("raw", number) for number in range(raw)] + [one for place, one in enumerate(self.browsers) if place % 3]
        self.members = [Device("member", number) for number in range(members)] + self.browsers[::3]

    def subscribe(self, path):
        """Reads the simulator's subscriptions. Returns false while some are missing."""
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) < len(self.browsers) or not lines[-1].endswith("}"):
            return False
        for browser, line in zip(self.browsers, lines):
            browser.subscribe(json.loads(line)["subscription"])
        return True

    @property
    def tokens(self):
        """Tokens by the names in journals."""
        return {device.key: device.token for device in [*self.raw, *self.members]}

    def script(self, platform, storm=None):
        """The simulator's script: answers to refused tokens, and the answer to all others (`*`) during a storm."""
        script = {device.key: ANSWERS[platform, device.nature] for device in [*self.raw, *self.members]
                  if device.platform == platform and device.nature != "good"}
        return script | (storm or {})

    def write_members(self, path):
        with open(path, "w", encoding="ascii") as file:
            for device in self.members:
                name = {"subscription": device.subscription} if device.platform == "webpush" else {"token": device.token}
                file.write(json.dumps({"app": APP, "platform": device.platform, **name, "topics": [TOPIC]}) + "\n")
