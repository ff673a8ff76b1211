"""Delivers pushes to a service worker in headless Chromium, shows what it displays, and clicks on it.

Usage: notifications.py CHROMIUM FOLDER PAGE WORKER    PAGE and WORKER are files of JavaScript. PAGE registers /push-worker.js.
Reads the text of one push per line. Prints one JSON object for each: `shown`, the notifications; `badge`, the app's badge;
`opened`, the address that a click opens; `left`, the number of notifications after the click; `complaints`, the errors so far.
DevTools takes the place of the push service.
"""
import http.server
import json
import os
import sys
import threading

sys.path.append(os.path.join(os.path.dirname(__file__), "../../WorkerTests/Support"))
sys.dont_write_bytecode = True
import browser  # noqa: E402

# A headless browser has no windows to open and no icon for a badge. Chromium forgets a notification that is asked for before it
# is on the screen, so the end of showNotification is noted.
SPIES = """
var found = {};
const show = registration.showNotification.bind(registration);
registration.showNotification = (...words) => show(...words).finally(() => { found.isShown = true });
clients.openWindow = async (url) => { found.opened = url };
navigator.setAppBadge = async (badge) => { found.badge = badge };
"""
# Only the browser can extend the life of an event, so waitUntil is replaced.
CLICK = """
registration.getNotifications().then(async (notifications) => {
  found.shown = notifications.map(({ title, body, icon, image, tag, requireInteraction, data }) =>
    ({ title, body, icon, image, tag, requireInteraction, data }));
  for (const notification of notifications) {
    const event = new NotificationEvent("notificationclick", { notification });
    event.waitUntil = () => {};
    dispatchEvent(event);
  }
  found.left = (await registration.getNotifications()).length;
  return found;
})
"""


class Browser(browser.Browser):
    registration = None

    def hear(self, message):
        super().hear(message)
        if message.get("method") == "ServiceWorker.workerRegistrationUpdated":
            for registration in message["params"]["registrations"]:
                self.registration = registration["registrationId"]


def serve(page, worker):
    """The site's origin."""
    files = {
        "/": ("text/html", f'<!doctype html><link rel="icon" href="data:,"><p id="notify"></p><script>{page}</script>'),
        "/push-worker.js": ("text/javascript", worker),
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kind, text = files.get(self.path, (None, None))
            if kind is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def open_page(chromium, origin):
    """The session of the page, and that of its service worker."""
    browser.attach(chromium)
    page = chromium.session
    chromium.call("ServiceWorker.enable")
    chromium.call("Page.navigate", url=origin + "/")
    if not chromium.wait("navigator.serviceWorker?.getRegistration().then((found) => found?.active?.state === 'activated')"):
        sys.exit(f"the page has no service worker: {chromium.complaints}")
    # Afterwards, because the page subscribes at a push service if it has the permission.
    chromium.call("Browser.grantPermissions", origin=origin, permissions=["notifications"])
    targets = chromium.call("Target.getTargets")["targetInfos"]
    worker = next(target["targetId"] for target in targets if target["type"] == "service_worker")
    chromium.session = chromium.call("Target.attachToTarget", targetId=worker, flatten=True)["sessionId"]
    chromium.call("Runtime.enable")
    chromium.evaluate(SPIES)
    return page, chromium.session


def main():
    program, folder, *files = sys.argv[1:]
    origin = serve(*(open(file).read() for file in files))
    chromium = Browser(program, folder)
    try:
        page, worker = open_page(chromium, origin)
        for line in sys.stdin:
            chromium.evaluate("found = {}")
            chromium.session = page
            chromium.call(
                "ServiceWorker.deliverPushMessage", origin=origin, registrationId=chromium.registration, data=line.rstrip("\n"))
            chromium.session = worker
            if not chromium.wait("found.isShown"):
                sys.exit(f"the service worker shows nothing: {chromium.complaints}")
            print(json.dumps(chromium.evaluate(CLICK) | {"complaints": chromium.complaints}), flush=True)
    finally:
        chromium.process.kill()
        chromium.process.wait()


main()
