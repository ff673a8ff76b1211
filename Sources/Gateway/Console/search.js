import { make } from "./dom.js";
import { appField, card, encode, form, only, outcome } from "./parts.js";

const kinds = { id: "Message", token: "Token or registration", user: "User", installation: "Installation" };
const known = (by, id) => id && (kinds[by] ? by : "id");

/// The trace is read only when asked for, because that reads all of it.
export const search = {
  name: "Search",
  asks: (args, { app, by, id }) => app && known(by, id) === "id" ? { message: `/v1/fleet/apps/${encode(app)}/messages/${encode(id)}` } : {},
  asksOnce: (args, { app, by, id }) => app && id ? { trace: `/v1/fleet/apps/${encode(app)}/trace?` + new URLSearchParams({ [known(by, id)]: id }) } : {},
  show: (state, args, { app, by, id }) => [make("h1", {}, "Search"),
    form("search", appField(state, app || only(state)),
      make("label", {}, "by ", make("select", { name: "by" }, Object.entries(kinds).map(([value, name]) => make("option", { value, selected: value === known(by, id) }, name)))),
      make("label", {}, "Id, token or name ", make("input", { name: "id", value: id, size: "38", autocomplete: "off", required: true })), make("button", {}, "Find")),
    app && known(by, id) === "id" && (state.message?.message_id === id && state.message.state || state.trace && !state.trace.text) && card(`Message ${id}`, outcome(state.message, id)),
    app && id && card(known(by, id) === "id" ? "Trace" : `The last requests to ${id}, the newest first`, story(state)),
    make("p", { class: "note" }, "The outcome is known of requests that came through the gateway, and of broadcasts. The trace has the requests of the last day, or as long as ", make("code", {}, "trace.keep"), " says.")],
};

function story(state) {
  if (!state.trace) return make("p", { class: "note" }, state.refusals.trace || "Reading…");
  const { text, left_out: left } = state.trace;
  return [text ? make("pre", { tabindex: "0", "aria-label": "Trace" }, make("code", {}, text)) : make("p", { class: "note" }, "The trace has nothing of it."),
    left > 0 && make("p", { class: "note" }, `Workers left ${left} successful requests out of the trace.`)];
}
