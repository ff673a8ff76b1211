import { inline, make, number, table, time } from "./dom.js";
import { appField, button, card, encode, linked, only, pill } from "./parts.js";

// Dead letters and held requests. To look at them takes them out of their queue for a moment, so a page asks only when its address changes,
// and after an operation.
const jobs = "/v1/fleet/jobs";
const filters = ({ app, error, origin, reason, since, id }) => Object.fromEntries(Object.entries({ app, error, origin, reason, since, id }).filter(([, value]) => value));

export const deadLetters = {
  name: "Dead letters", asks: () => ({ jobs }),
  asksOnce: ([id], query) => id ? { letters: "/v1/fleet/dead?" + new URLSearchParams({ ...filters(query), id, content: true }) }
    : query.look ? { letters: "/v1/fleet/dead?" + new URLSearchParams({ ...filters(query), limit: 100 }) } : {},
  show: (state, [id], query) => id ? oneLetter(state, id, query) : allDead(state, query),
};

export const heldRequests = {
  name: "Held requests", asks: () => ({ jobs, apps: "/v1/fleet/apps" }),
  asksOnce: (args, { app, look }) => app && look ? { letters: `/v1/fleet/apps/${encode(app)}/held?limit=100` } : {},
  show: allHeld,
};

// MARK: dead letters

function allDead(state, query) {
  const seen = query.look && state.letters, filter = filters(query);
  return [make("h1", {}, "Dead letters"),
    make("form", { class: "filter row card", "data-page": "dead" }, appField(state),
      make("label", {}, "Error ", make("input", { name: "error", autocomplete: "off", size: "16" })),
      make("label", {}, "Reason has ", make("input", { name: "reason", autocomplete: "off", size: "20" })),
      make("input", { type: "hidden", name: "look", value: "1" }), make("button", {}, "Look")),
    !query.look && make("p", { class: "note" }, "Requests, registry changes and acknowledgements that will not be tried again. A key for some applications has to name one of them."),
    query.look && !seen && make("p", { class: "note" }, state.refused || "Looking…"),
    seen && card(`${number(seen.matched)} of ${number(seen.ready)} dead letters`,
      make("p", { class: "note" }, described(filter), seen.seen < seen.ready && ` Only the ${number(seen.seen)} oldest were looked at.`),
      seen.matched > 0 && make("div", { class: "row" }, changes(state, filter, seen.matched)),
      table("Dead letters by reason", [["Letters", "n"], ["Application", ""], ["Error", "name"], ["From", ""], ["Newest", ""], ["Reason", "wide"], ["", ""]], seen.groups.map((group, i) => [
        String(i), number(group.count), group.app ? linked(group.app) : "", group.error || "", group.origin || "", time(group.newest), group.reason,
        isSelectable(group) && make("a", { href: "#/dead?" + new URLSearchParams({ ...filter, ...of(group), look: 1 }) }, "Only these")]), "None."),
      seen.notices && make("p", { class: "note" }, seen.notices)),
    seen && seen.letters.length > 0 && card("The oldest", letterTable(seen.letters, letter => "#/dead/" + encode(letter.message_id || "") + "?" + new URLSearchParams(letter.app ? { app: letter.app } : {}))),
    jobTable(state)];
}

const of = group => filters({ app: group.app || "-", error: group.error || "-", origin: group.origin || "-", reason: group.reason });
/// A filter can't name a missing reason, nor all the rare ones.
const isSelectable = group => group.reason && group.reason !== "other reasons";

/// The number is the one that was shown, so that letters which come meanwhile stay.
function changes(state, { id, ...filter }, count) {
  if (id) filter.ids = [id];
  const body = { filter: { ...filter, limit: count } }, what = count === 1 ? "1 letter" : `${number(count)} letters`;
  return [button(state, "dead", "replay", `Replay ${what}`, "letters", `They go back to where they came from, the oldest first. ${described(filter)}`, body),
    button(state, "dead", "drop", `Drop ${what}`, "", `They are deleted for good. ${described(filter)}`, body)];
}

function described(filter) {
  const words = Object.entries(filter).map(([name, value]) => `${name} ${value}`);
  return words.length ? `Selected by ${words.join(", ")}.` : "All letters.";
}

const letterTable = (letters, link) => table("Messages", [["Message", "name"], ["Application", ""], ["Error", ""], ["From", ""], ["Given up", ""], ["Attempts", "n"], ["Reason", "wide"]], letters.map((letter, i) => [
  String(i), letter.message_id && link ? make("a", { href: link(letter) }, letter.message_id) : letter.message_id || "(no id)", letter.app ? linked(letter.app) : "", letter.error || "", letter.origin || "", time(letter.failed_at), number(letter.attempts), letter.reason]), "None.");

function oneLetter(state, id, query) {
  const letter = state.letters?.letters[0], filter = { ...filters(query), ids: [id] };
  if (letter?.message_id !== id) return [make("h1", {}, `Letter ${id}`), make("p", { class: "note" }, state.refused || (state.letters ? state.letters.seen < state.letters.ready ? `It is not among the ${number(state.letters.seen)} oldest dead letters.` : "It is no dead letter." : "Looking…"))];
  const facts = [["Application", letter.app && linked(letter.app)], ["Error", letter.error], ["Reason", letter.reason], ["Status of the provider", letter.status], ["Attempts", letter.attempts],
    ["Given up", time(letter.failed_at)], ["From", letter.origin], ...Object.entries(letter.headers).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : value])];
  return [make("h1", {}, `Letter ${id}`), card(null, make("div", { class: "row" }, changes(state, filter, 1)),
    table("The letter", [["Field", "name"], ["Value", "wide"]], facts.filter(([, value]) => value != null && value !== "").map(([name, value]) => [name, name, value.nodeType ? value : String(value)]), "")),
    card("Body", make("pre", { tabindex: "0" }, make("code", {}, letter.body ?? letter.body_base64 ?? "(too large to show)"))), jobTable(state)];
}

// MARK: held requests

function allHeld(state, args, query) {
  const seen = query.app && query.look && state.letters, one = (state.apps || []).find(one => one.app === query.app);
  const path = "apps/" + encode(query.app || "");
  return [make("h1", {}, query.app ? `Held requests of ${query.app}` : "Held requests"),
    make("form", { class: "filter row card", "data-page": "held" }, appField(state, query.app || only(state)), make("input", { type: "hidden", name: "look", value: "1" }), make("button", {}, "Look")),
    make("p", { class: "note" }, inline("An application's requests wait here while it is paused, or while its provider is in trouble. The broker counts **each look as a return**: after two, a request is processed alone; after 50 it is a dead letter.")),
    one?.state === "paused" && make("div", { class: "row card" }, button(state, path, "discard", `Discard what waits for ${query.app}`, "", "All held requests are deleted for good. The application stays paused.", {})),
    query.look && query.app && !seen && make("p", { class: "note" }, state.refused || "Looking…"),
    seen && card(`${number(seen.matched)} of ${number(seen.ready)} held requests`,
      table("Held requests by reason", [["Requests", "n"], ["From", ""], ["Oldest", ""], ["Newest", ""], ["Reason", "wide"]], seen.groups.map((group, i) => [
        String(i), number(group.count), group.origin || "", time(group.oldest), time(group.newest), group.reason]), "None.")),
    seen && seen.letters.length > 0 && card("The first", letterTable(seen.letters)), jobTable(state)];
}

// MARK: jobs

function jobTable(state) {
  if (!state.jobs?.length) return [];
  return card("Operations of this process", table("Operations", [["Action", "name"], ["Selection", "wide"], ["State", ""], ["Looked at", "wide"], ["Messages", "n"], ["By", ""], ["Begun", ""], ["", ""]], state.jobs.map(job => [
    String(job.job), job.action, [job.app, Object.entries(job.filter).map(([name, value]) => `${name} ${value}`).join(", ")].filter(Boolean).join("; ") || "all",
    [pill(job.state, { running: "good", waiting: "calm", done: "calm", stopped: "warn" }[job.state]), job.failure && make("span", { class: "note" }, " ", job.failure)],
    job.expected > 0 && [make("progress", { value: job.done, max: job.expected, "aria-label": `${number(job.done)} of ${number(job.expected)} looked at` })],
    number(job.messages), job.by, time(job.began),
    ["running", "waiting"].includes(job.state) && button(state, "jobs/" + job.job, "stop", `Stop ${job.action} ${job.job}`, "", "It undoes nothing: handled messages stay handled.", {})]), "None."));
}
