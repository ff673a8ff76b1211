"""A broadcast to browsers: each push is encrypted for its device (RFC 8291), with a new key."""

import base64
import os
import subprocess

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fanout import broadcast, serve_devices
from measure import Part, Running, measured, say
from registry import EVERYONE, token

# The message that openssl encrypts: about as long as the benchmark's payload.
MESSAGE = 300


class WebPush(Part):
    name = "webpush"
    rows = [
        ("h2load, CPU per request", "h2load_us", "{:.2f} µs"),
        ("openssl, a key agreement on P-256", "ecdh_us", "{:.2f} µs"),
        ("openssl, AES-128-GCM", "aead_us", "{:.2f} µs"),
        ("worker, CPU per browser", "each_us", "{:.2f} µs"),
    ]
    limits = [
        ("browser, to key agreement, encryption and request", "ratio", 1.6, "{:.2f}×"),
        ("peak memory", "peak_rss_mib", 64.0, "{:.1f} MiB"),
    ]

    def __init__(self, site):
        super().__init__(site)
        self.count = max(site.devices // 10, 1)
        self.config = None

    def title(self):
        return f"A broadcast to {self.count:,} browsers on SQLite"

    def round(self):
        site = self.site
        serve_devices(site, self.count)
        self.config = self.config or self.register()
        before = self.floor()
        cost = broadcast(site, self.config, EVERYONE, self.count)
        # Measured before and after, because other load on the machine varies.
        ecdh, aead, h2load = ((one + other) / 2 for one, other in zip(before, self.floor()))
        each = (cost.cpu - site.idle.cpu) / self.count * 1e6
        return {"h2load_us": h2load, "ecdh_us": ecdh, "aead_us": aead, "each_us": each, "ratio": each / (ecdh + aead + h2load),
                "peak_rss_mib": cost.memory}

    def floor(self):
        return speed("ecdhp256"), speed("-bytes", str(MESSAGE), "-evp", "aes-128-gcm"), self.site.h2load(self.count)

    def register(self):
        say(f"registering {self.count:,} browsers")
        site = self.site
        keys = {"key": "AuthKey_ABC123DEFG.p8", "subject": "mailto:push@example.com", "hosts": ["127.0.0.1"], "ca": "ca.pem"}
        config = site.configure("browsers", registry=f"sqlite:{site.folder}/browsers.db", apps={"com.example.app": {"webpush": keys}})
        rows = site.folder / "browsers.csv"
        with open(rows, "w", encoding="ascii") as file:
            file.write("platform,endpoint,p256dh,auth,installation,topics\n")
            point = encoded(ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint))
            for number in range(self.count):
                endpoint = f"https://127.0.0.1:{site.provider_port}/3/device/{token(number)}"
                file.write(f"webpush,{endpoint},{point},{encoded(os.urandom(16))},i-{number},{EVERYONE}\n")
        measured([site.pushfleet, "devices", "import", "--config", config, str(rows)])
        return config


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def speed(*test):
    """CPU microseconds of one operation, by `openssl speed`."""
    output = Running(["openssl", "speed", "-mr", "-seconds", "2", *test], errors=subprocess.DEVNULL).finish().output
    kind, *_, last = [line for line in output.splitlines() if line.startswith("+F")][-1].split(":")
    # Key agreements end with seconds, ciphers with bytes per second.
    return (float(last) if kind == "+F5" else MESSAGE / float(last)) * 1e6
