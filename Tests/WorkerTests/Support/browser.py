"""Opens a page in headless Chromium, in three widths, light and dark, and says how each looks; then waits for a text to appear,
and for the page to say that the worker is gone.

Usage: browser.py CHROMIUM URL FOLDER WORD    prints one JSON object per view, then reads a line, and prints another when WORD stands in the page;
                                           then the same for "No answer".
       browser.py CHROMIUM URL FOLDER --pictures PLACE    takes whole pages into PLACE: the pictures of docs/operate/watching.md
It speaks the DevTools protocol over Chromium's pipes: https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import fcntl
import json
import os
import subprocess
import sys
import time

WIDTHS = [375, 820, 1440]
# Seconds within which a page shows what is waited for.
TIMEOUT = 25


class Browser:
    def __init__(self, program, folder):
        commands, self.writer = self.pipe()
        self.reader, answers = self.pipe()

        def arrange():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"],
            close_fds=False, preexec_fn=arrange, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        os.close(commands)
        os.close(answers)
        self.number = 0
        self.rest = b""
        self.session = None
        self.complaints = []

    @staticmethod
    def pipe():
        """Away from 3 and 4, which Chromium reads and writes. It inherits none of these."""
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20))
            os.close(end)
        return ends

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.reader, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.writer, json.dumps(call).encode() + b"\0")
        while True:
            message = self.read()
            self.hear(message)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def hear(self, message):
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(message["params"])[:500])

    def evaluate(self, expression):
        """The expression's value, or that of its promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if self.evaluate(expression):
                return True
            time.sleep(0.1)
        return False


def main():
    program, url, folder, *words = sys.argv[1:]
    browser = Browser(program, folder)
    try:
        if words[0] == "--pictures":
            take_pictures(browser, url, words[1])
        else:
            look(browser, url, words[0])
    finally:
        browser.process.kill()
        browser.process.wait()


def attach(browser):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Runtime", "Log", "Page"):
        browser.call(f"{domain}.enable")


def show(browser, url, scheme, width, height):
    """Whether the page shows figures."""
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.call("Page.navigate", url=url)
    return browser.wait("document.querySelector('svg') !== null && document.body.innerText.includes('com.example.')")


def take_pictures(browser, url, place):
    attach(browser)
    # They would take the page's margin.
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    for name, scheme, width in (("dashboard", "light", 1280), ("dashboard-dark", "dark", 820), ("dashboard-phone", "light", 390)):
        if not show(browser, url, scheme, width, 800):
            sys.exit("the page shows no figures")
        # Rates are of what the page has seen since it was opened.
        time.sleep(6)
        size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(f"{place}/{name}.png", "wb") as file:
            file.write(base64.b64decode(picture))


def look(browser, url, word):
    attach(browser)
    for scheme in ("light", "dark"):
        for width in WIDTHS:
            is_shown = show(browser, url, scheme, width, 1600)
            print(json.dumps({
                "scheme": scheme, "width": width, "shown": is_shown,
                "overflow": browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
                "background": browser.evaluate("getComputedStyle(document.body).backgroundColor"),
                "ink": browser.evaluate("getComputedStyle(document.body).color"),
                "complaints": browser.complaints,
            }), flush=True)
    for name, words in (("live", word), ("dead", "No answer")):
        sys.stdin.readline()
        print(json.dumps({name: browser.wait(f"document.body.innerText.includes({json.dumps(words)})")}), flush=True)


if __name__ == "__main__":
    main()
