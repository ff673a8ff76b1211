"""Whom is sent to: device tokens of both platforms, some of which the providers refuse for good."""

import hashlib

APP, PROJECT, TOPIC = "com.example.app", "example", "everybody"

# What a device's number, taken by the hundred, makes of it; any other is reached.
GONE, SUSPECT, REFUSED = range(0, 4), range(4, 6), range(6, 7)
# What the simulators' scripts say of them.
ANSWERS = {
    ("apns", "gone"): {"status": 410, "reason": "Unregistered"},
    ("apns", "suspect"): {"status": 400, "reason": "BadDeviceToken"},
    ("apns", "refused"): {"status": 400, "reason": "BadCollapseId"},
    ("fcm", "gone"): {"status": 404, "reason": "UNREGISTERED"},
    ("fcm", "suspect"): {"status": 403, "reason": "SENDER_ID_MISMATCH"},
    ("fcm", "refused"): {"status": 400, "reason": "INVALID_ARGUMENT"},
}


class Device:
    """A phone: `target` is how a request names it, `nature` what its provider always says (`good`: delivered)."""

    def __init__(self, family, number):
        name = hashlib.sha256(f"{family} {number}".encode()).hexdigest()
        self.platform = "apns" if number % 2 == 0 else "fcm"
        self.token = name if self.platform == "apns" else f"c{name[:21]}:APA91b{name}"
        self.target = f"{self.platform}:{self.token}"
        kind = number // 2 % 100
        self.nature = "gone" if kind in GONE else "suspect" if kind in SUSPECT else "refused" if kind in REFUSED else "good"


class Devices:
    """`raw` are named by their provider's tokens and are in no registry; `members` are, subscribed to the topic."""

    def __init__(self, raw, members):
        self.raw = [Device("raw", number) for number in range(raw)]
        self.members = [Device("member", number) for number in range(members)]
        self.by_token = {device.token: device for device in [*self.raw, *self.members]}

    def script(self, platform, storm=None):
        """What the simulator does with each token, and with all others (`*`) while there is a storm."""
        script = {device.token: ANSWERS[platform, device.nature] for device in self.by_token.values()
                  if device.platform == platform and device.nature != "good"}
        return script | (storm or {})

    def write_members(self, path):
        with open(path, "w", encoding="ascii") as file:
            file.write("platform,token,topics\n")
            file.writelines(f"{device.platform},{device.token},{TOPIC}\n" for device in self.members)
