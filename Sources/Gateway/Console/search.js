import { make } from "./dom.js";
import { appField, card, encode, outcome } from "./parts.js";

export const search = {
  name: "Search",
  asks: (args, { app, id }) => app && id ? { message: `/v1/fleet/apps/${encode(app)}/messages/${encode(id)}` } : {},
  show: (state, args, { app, id }) => [make("h1", {}, "Search"),
    make("form", { class: "filter row card", "data-page": "search" }, appField(state, app),
      make("label", {}, "Message ", make("input", { name: "id", value: id, size: "24", autocomplete: "off", required: true })), make("button", {}, "Find")),
    app && id && card(`Message ${id}`, outcome(state.message, id)),
    make("p", { class: "note" }, "This page knows requests that came through the gateway, and broadcasts. With tracing on, ", make("code", {}, "pushfleet trace"), " follows any message.")],
};
