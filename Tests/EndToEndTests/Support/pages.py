"""Drives pages in headless Chromium. Each page has its own cookies, like another user's browser.

Usage: pages.py CHROMIUM FOLDER
Reads one JSON object per line and prints one for each: `page` is a page's number, which is opened when it is first named; then
  `call` and `with`    a method of the DevTools protocol, and its parameters
  `value`              a JavaScript expression; answers `value`
  `wait`               an expression that becomes true; answers whether it did
  `press`              keys, such as Tab; a longer text is typed
  `picture`            a file for a picture of the whole page
Each answer has `complaints`: errors, and violations of the page's policy, since the last answer.
"""
import base64
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../../WorkerTests/Support"))
sys.dont_write_bytecode = True
import browser  # noqa: E402

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32}


class Pages(browser.Browser):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.sessions = {}

    def turn_to(self, page):
        self.session = self.sessions.get(page)
        if self.session:
            return
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = self.sessions[page] = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        # They would take the page's margin.
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        # A page that is not in front would count as hidden.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def hear(self, message):
        super().hear(message)
        if message.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(message["params"])[:500])

    def press(self, key):
        if key not in KEYS:
            return self.call("Input.insertText", text=key)
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        words = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **words)
        return self.call("Input.dispatchKeyEvent", type="keyUp", **words)

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def obey(self, order):
        self.turn_to(order["page"])
        value = None
        if "call" in order:
            self.call(order["call"], **order.get("with", {}))
        elif "value" in order:
            value = self.evaluate(order["value"])
        elif "wait" in order:
            value = self.wait(order["wait"])
        elif "press" in order:
            for key in order["press"]:
                self.press(key)
        elif "picture" in order:
            self.picture(order["picture"])
        complaints, self.complaints = self.complaints, []
        return {"value": value, "complaints": complaints}


def main():
    pages = Pages(*sys.argv[1:])
    try:
        for line in sys.stdin:
            print(json.dumps(pages.obey(json.loads(line))), flush=True)
    finally:
        pages.process.kill()
        pages.process.wait()


main()
