import { make, number, table } from "./dom.js";
import { appField, card, encode, only, outcome } from "./parts.js";

// A request is too long for the page's address, so the state has what was answered, until the user logs out.
const names = { apns: "iPhone, through APNs", fcm: "Android, through FCM", webpush: "Browser, through web push" };
const template = to => JSON.stringify({ to, notification: { title: "Hello", body: "A test" } }, null, 2);
const none = { app: "", request: "", platforms: null, refusal: "", sent: "", busy: false };

export const testSend = {
  name: "Send a test",
  asks: (args, query, { test: last }) => last?.sent ? { apps: "/v1/fleet/apps", message: `/v1/fleet/apps/${encode(last.app)}/messages/${encode(last.sent)}` } : { apps: "/v1/fleet/apps" },
  show: (state, args, { app, to }, last = (!to || state.test?.to === to) && state.test || { ...none, app, to, request: to && template(to) }) => [make("h1", {}, "Send a test"),
    make("div", { class: "beside" },
      make("form", { class: "card", id: "test", "data-key": location.hash }, make("div", { class: "filter row" }, appField(state, last.app || only(state))),
        make("label", {}, "Request ", make("textarea", { name: "request", rows: "14", spellcheck: "false", autocomplete: "off", required: true, placeholder: '{ "to": "a token, a registration or /users/a name", "notification": { "title": "Hello", "body": "A test" } }', "aria-describedby": "test-refusal test-note", "aria-invalid": last.refusal ? "true" : "false" }, last.request)),
        make("p", { id: "test-refusal", class: last.refusal && "bad", role: "alert" }, last.refusal),
        make("p", { id: "test-note", class: "note" }, "JSON, as for the send queues. A test goes to one token, registration, user or group. The audit records it."),
        make("div", { class: "row" }, make("button", { value: "explain" }, "Preview"), state.me.rights.includes("operate") && make("button", { value: "test" }, "Send to the target")),
        paused(state, last.app || only(state)) && make("p", { class: "note" }, "The application is paused: a test waits until it is resumed."),
        last.sent && make("section", { "aria-label": "Outcome" }, make("h2", {}, "Outcome"), outcome(state.message, last.sent),
          make("p", {}, make("a", { href: "#/search?" + new URLSearchParams({ app: last.app, by: "id", id: last.sent }) }, "Trace of the test")))),
      make("div", { id: "explained" }, last.platforms?.length > 1 && make("p", { class: "note" }, "The target's devices decide which of these are sent."), (last.platforms || []).map(platform)))],
  /// Each press of Send is a new request.
  async submit(event, ask, state, openDialog) {
    if (state.test?.busy) return;
    const form = new FormData(event.target), app = form.get("app").trim(), verb = event.submitter?.value || "explain";
    const to = new URLSearchParams(location.hash.split("?")[1]).get("to");
    const last = state.test = { ...none, app, to, request: form.get("request"), busy: true };
    try {
      const path = `/v1/fleet/apps/${encode(app)}/`, explained = await ask(path + "explain", form.get("request"));
      last.platforms = explained.platforms;
      const request = JSON.parse(last.request), headers = { "Idempotency-Key": crypto.randomUUID() };
      const target = ["to", "registration_ids", "notification_key", "token", "fid"].map(name => request[name] ?? request.message?.[name]).find(one => one);
      if (verb === "test") openDialog("Send the test", `The test goes to ${target} of the application ${app}.`, async () => { last.sent = (await ask(path + "test", last.request, headers)).message_id; });
    } catch (error) {
      if (error.status === 401) throw error;
      last.refusal = error.message;
    } finally {
      last.busy = false;
    }
  },
};

const paused = (state, app) => (state.apps || []).some(one => one.app === app && one.state === "paused");

function platform(one) {
  const name = names[one.platform] || one.platform;
  if (one.error) return card(name, make("p", {}, make("code", {}, one.error), ` ${one.reason}`));
  return card(name, make("p", { class: "note" }, `${number(one.bytes)} of ${number(one.limit)} bytes`),
    table(`Headers, ${name}`, [["Header", "name"], ["Value", "wide"]], Object.entries(one.headers).map(([header, value]) => [header, header, value]), "No headers."),
    make("pre", { tabindex: "0", "aria-label": `Payload, ${name}` }, make("code", {}, JSON.stringify(one.payload, null, 2))),
    table(`Losses, ${name}`, [["Field", "name"], ["Loss", "wide"]], one.losses.map((loss, i) => [String(i), loss.field, `${loss.action}: ${loss.words} (${loss.rule})`]), "Nothing is lost."));
}
