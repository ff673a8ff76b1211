import { make } from "./dom.js";

// Parts that several pages have.
export const encode = encodeURIComponent;
export const card = (title, ...parts) => make("section", { class: "card" }, title && make("h2", {}, title), parts);
export const sum = (items, value) => items.reduce((all, item) => all + (value(item) || 0), 0);
const tones = { ok: "good", running: "good", open: "good", paused: "warn", draining: "warn", probing: "warn", held: "bad", gone: "bad", cancelled: "calm", completed: "calm", idle: "calm", connecting: "calm", closing: "calm", closed: "calm" };
export const pill = (word, tone) => make("span", { class: "pill " + (tone || tones[word] || "bad") }, word);

/// Shows the state in the head of the page.
export function tell(node, tone, words) {
  node.className = "pill " + tone;
  if (node.textContent !== words) node.textContent = words;
}
/// The kind of the worst problem, and the number of all in words.
export const verdict = found => [found.some(one => one.kind === "bad") ? "bad" : found.length ? "warn" : "good", `${found.length || "no"} problem${found.length > 1 ? "s" : ""}`];
/// A queue of the fleet, and the number of requests that an application's hold queue has, as workers tell it. Neither is known without
/// the fleet's status.
export const queue = (state, name) => state.status?.queues.find(queue => queue.queue === `${state.status.prefix}.${name}`);
export const held = (state, app) => state.status?.workers.length > 0 ? Math.max(0, ...state.status.workers.flatMap(worker => worker.holds).filter(hold => hold.app === app).map(hold => hold.ready)) : null;

export const linked = app => make("a", { href: "#/apps/" + encode(app) }, app);

/// A button that opens the dialog of an operation; nothing without the right. The first of a row keeps the focus when its operation
/// changes from pause to resume.
export function button(state, path, verb, what, fields = "", words = "", body = null, text = verb[0].toUpperCase() + verb.slice(1)) {
  if (!state.me.rights.includes("operate")) return null;
  return make("button", { type: "button", "data-post": `/v1/fleet/${path}/${verb}`, "data-what": what, "data-fields": fields, "data-words": words,
    "data-body": body && JSON.stringify(body), "aria-label": what }, text);
}

/// A form that changes the address. Each address has a form of its own, so that none shows what was typed into another one.
export const form = (page, ...parts) => make("form", { class: "filter row card", "data-page": page, "data-key": location.hash }, parts);

/// The key's only application, to fill in on pages that need one; null if the key has several.
export const only = state => state.me.apps.length === 1 ? state.me.apps[0] : null;

export const appField = (state, value) => [make("label", {}, "Application ", make("input", { name: "app", value, list: "app-names", autocomplete: "off" })), make("datalist", { id: "app-names" }, state.me.apps.map(app => make("option", { value: app })))];

/// A result's devices by outcome, in words.
function counted({ success, failure, results }) {
  const errors = new Set((results || []).map(one => one.reason ? `${one.error}: ${one.reason}` : one.error).filter(Boolean));
  return [`Accepted for ${success} of ${success + failure} devices.`, ...[...errors].map(error => `${error}.`)].join(" ");
}

/// The outcome of a request, as `/v1/fleet/apps/<app>/messages/<id>` answers.
export function outcome(message, id) {
  if (message?.message_id !== id || !message.state) return make("p", { class: "note" }, `Nothing is known of ${id} here.`);
  const words = { accepted: "No result is known here: the request waits, or this gateway could not note its result. The trace has more." }[message.state];
  return [make("p", {}, pill(message.state === "accepted" ? "queued" : message.state, { done: "good", accepted: "calm" }[message.state] || "warn"), ` ${id}`),
    words && make("p", { class: "note" }, words), message.result && [make("p", {}, counted(message.result)),
      make("pre", { tabindex: "0", "aria-label": "Result" }, make("code", {}, JSON.stringify(message.result, null, 2)))]].flat();
}
