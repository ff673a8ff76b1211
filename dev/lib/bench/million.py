"""Single requests of one application while a million requests of another arrive."""

import contextlib
import json
import os
import statistics
import time

import pika

from isolation import CALM, NORMAL, TROUBLED, Devices, Kind, Scene, wait
from measure import Part, Running, say

# Requests of the other application.
MILLION = 1_000_000
# Seconds between two single requests.
PAUSE = 0.5


class Million(Part):
    name = "million"
    rows = [("a single request meanwhile, at most", "single_most", "{:.2f} s"), ("at the median", "single_median", "{:.2f} s"),
            ("pushes a second of the million", "rate", "{:,.0f}")]
    limits = [("a single request meanwhile, at most", "single_most", 2.0, "{:.2f} s"), ("peak memory", "peak_rss_mib", 96.0, "{:.1f} MiB")]

    def title(self):
        return f"Single pushes of an application while {MILLION:,} requests of another one come and are sent"

    def round(self):
        with contextlib.ExitStack() as stack:
            scene = Scene(self.site, Kind("million", "a million", script=NORMAL), stack)
            worker = self.site.start_worker(scene.config)
            connection, channel = self.site.channel()
            stack.callback(connection.close)
            channel.confirm_delivery()
            calm, million = Devices(scene.calm.journal), Devices(scene.troubled_journal)
            self._send(scene, channel, 0)
            wait(lambda: calm.look() == 1, 20, "the first push")
            path = self.site.folder / "million.ndjson"
            with open(path, "w") as file:
                for device in range(MILLION):
                    file.write(f'{{"to": "{device:064x}", "notification": {{"body": "hello"}}}}\n')
            begun = time.monotonic()
            sending = Running([self.site.pushfleet, "send", "--config", scene.config, "--app", TROUBLED, str(path)])
            waits, published = [], 0.0
            while million.look() < MILLION:
                if not published and os.waitid(os.P_PID, sending.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    published = time.monotonic() - begun
                number = len(waits) + 1
                asked = time.monotonic()
                self._send(scene, channel, number)
                wait(lambda: calm.look() > number, 120, "a single push")
                waits.append(time.monotonic() - asked)
                connection.process_data_events(PAUSE)
            seconds = time.monotonic() - begun
            sending.finish()
            say(f"million: published within {published:.1f} s, sent within {seconds:.1f} s; {len(waits)} single pushes")
            with open(f"/proc/{worker.child.pid}/status") as file:
                memory = [line for line in file if line.startswith("VmHWM")]
            worker.end()
            twice = sum(count > 1 for count in million.counts.values())
            if twice:
                raise SystemExit(f"bench: {twice} of the million were sent more than once")
        return {"single_most": max(waits), "single_median": statistics.median(waits), "rate": MILLION / seconds,
                "peak_rss_mib": int(memory[0].split()[1]) / 1024}

    def _send(self, scene, channel, number):
        body = json.dumps({"to": f"{MILLION + number:064x}", "notification": {"body": "hello"}})
        channel.basic_publish("", f"{scene.prefix}.send.normal", body, pika.BasicProperties(app_id=CALM, delivery_mode=2))
