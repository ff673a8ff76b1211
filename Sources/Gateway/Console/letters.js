import { inline, make, number, table, time } from "./dom.js";
import { appField, button, card, encode, form, held as heldOf, linked, only, pill, queue as fleetQueue } from "./parts.js";

// Dead letters and held requests. A look takes them out of their queue for a moment, so a page asks only when its address changes,
// and after an operation.
export const jobs = "/v1/fleet/jobs";
const dead = { page: "dead", title: "Dead letters", one: "dead letter", many: "dead letters", since: "Given up", path: () => "dead", waits: state => fleetQueue(state, "dead")?.ready };
const held = { page: "held", title: "Held requests", one: "held request", many: "held requests", since: "Held since", path: app => `apps/${encode(app)}/held`, waits: heldOf };
const filters = ({ app, error, origin, reason, since, id }) => Object.fromEntries(Object.entries({ app, error, origin, reason, since, id }).filter(([, value]) => value));
/// The filter of the queue's interface: the hold queue has an application's requests only.
const inQueue = (queue, { app, ...filter }) => queue === dead && app ? { app, ...filter } : filter;

const page = (queue, more, show) => ({
  name: queue.title, asks: () => ({ jobs, ...more }),
  asksOnce: ([id], query) => {
    if (!id && !query.look || queue === held && !query.app) return {};
    return { letters: `/v1/fleet/${queue.path(query.app)}?` + new URLSearchParams({ ...inQueue(queue, filters(query)), ...id ? { id, content: true } : { limit: 100 } }) };
  },
  show: (state, [id], query) => id ? oneLetter(queue, state, id, query) : show(state, query),
});

export const deadLetters = page(dead, {}, allDead);
export const heldRequests = page(held, { apps: "/v1/fleet/apps" }, allHeld);

// MARK: all

function allDead(state, query) {
  return [make("h1", {}, dead.title), filterForm(dead, query.app || only(state), query, make("label", {}, "Error ", make("input", { name: "error", value: query.error, autocomplete: "off", size: "16" })), state),
    !query.look && [waiting(dead, state), make("p", { class: "note" }, "Dead letters are requests, registry changes and acknowledgements that will not be tried again. A look takes them out of their queue for a moment, so the page looks only when you ask it to. A key for some applications has to name one of them.")],
    found(dead, state, query), jobTable(state)];
}

function allHeld(state, query) {
  const one = (state.apps || []).find(one => one.app === query.app), ready = query.look && state.letters?.ready;
  return [make("h1", {}, query.app ? `Held requests of ${query.app}` : held.title), filterForm(held, query.app || only(state), query, null, state),
    make("p", { class: "note" }, inline("An application's requests wait here while it is paused, or while its provider is in trouble. The broker counts **each look as a return**: after two, a request is processed alone; after 50 it is a dead letter. So the page looks only when you ask it to.")),
    query.app ? !query.look && waiting(held, state, query.app) : card("Applications", table("Applications", [["Application", "name"], ["Held", "n"]], (state.apps || []).map(({ app }) => [app, make("a", { href: `#/held?app=${encode(app)}` }, app), number(heldOf(state, app))]), "The key has no configured application.")),
    query.app && found(held, state, query, one?.state === "paused" && ready > 0 && !Object.keys(inQueue(held, filters(query))).length && button(state, "apps/" + encode(query.app), "discard", `Discard all ${number(ready)} held requests of ${query.app}`, "", "All of them are deleted for good, with those that come until it is done. The application stays paused.", {}, `Discard all ${number(ready)}`)), jobTable(state)];
}

function waiting(queue, state, app) {
  const count = queue.waits(state, app);
  return count != null && make("p", {}, make("strong", {}, count === 1 ? `1 ${queue.one} waits.` : `${count ? number(count) : "No"} ${queue.many} wait.`));
}

function filterForm(queue, app, query, more, state) {
  const selected = Object.keys(inQueue(queue, filters(query))).length > 0;
  return form(queue.page, appField(state, app), more, make("label", {}, "Reason has ", make("input", { name: "reason", value: query.reason, autocomplete: "off", size: "20" })),
    make("label", {}, "Message ", make("input", { name: "id", value: query.id, autocomplete: "off", size: "16" })),
    make("input", { type: "hidden", name: "look", value: "1" }), make("button", {}, `Look at the ${queue.many}`), selected && make("a", { href: `#/${queue.page}?` + new URLSearchParams({ ...queue === held && app && { app }, look: 1 }) }, "All"));
}

function found(queue, state, query, discard) {
  if (!query.look) return [];
  const seen = state.letters, filter = filters(query);
  if (!seen) return make("p", { class: "note" }, state.refusals.letters || "Looking…");
  const link = more => `#/${queue.page}?` + new URLSearchParams({ ...filter, ...more, look: 1 }), now = queue.waits(state, query.app);
  return [card(`${number(seen.matched)} of ${number(seen.ready)} ${queue.many}`,
    make("p", { class: "note" }, described(inQueue(queue, filter)), seen.seen < seen.ready && ` Only the ${number(seen.seen)} oldest were looked at.`),
    now > seen.ready && make("p", {}, make("strong", {}, `${number(now)} wait now. Look again to see the new ones.`)),
    (seen.matched > 0 || seen.seen < seen.ready) && make("div", { class: "row" }, discard || changes(queue, state, filter, seen.seen < seen.ready ? null : seen.matched)),
    table(`${queue.title} by reason`, [["Messages", "n"], queue === dead ? ["Application", ""] : null, queue === dead ? ["Error", "name"] : null, ["From", ""], ["Oldest", ""], ["Newest", ""], ["Reason", "wide"], ["", ""]].filter(Boolean), seen.groups.map((group, i) => [
      String(i), number(group.count), ...queue === dead ? [group.app ? linked(group.app) : "", group.error || ""] : [], group.origin || "", time(group.oldest), time(group.newest), group.reason,
      isSelectable(group) && Object.entries(of(queue, group)).some(([name, value]) => filter[name] !== value) && make("a", { href: link(of(queue, group)) }, "Only these")]), "None."),
    seen.notices && make("p", { class: "note" }, seen.notices)),
  seen.letters.length > 0 && card("The oldest", letterTable(queue, seen.letters, query.app))];
}

const of = (queue, group) => queue === held ? filters({ origin: group.origin || "-", reason: group.reason }) : filters({ app: group.app || "-", error: group.error || "-", origin: group.origin || "-", reason: group.reason });
/// A filter can't name a missing reason, nor all the rare ones.
const isSelectable = group => group.reason && group.reason !== "other reasons";

/// The number is the one that was shown, so that letters which come meanwhile stay. Without a number, all that match are meant: the look
/// didn't see all.
function changes(queue, state, { id, ...query }, count) {
  const filter = inQueue(queue, query), path = queue.path(query.app);
  if (id) filter.ids = [id];
  const body = { filter: { ...filter, ...count && { limit: count } } }, what = count === 1 ? `1 ${queue.one}` : `${count ? number(count) : "all"} ${queue.many}${count ? "" : " that match"}`;
  const words = [count ? "" : `Also those that the look didn't see. `, described(filter)].join(""), text = count ? number(count) : "all";
  return [queue === dead && button(state, path, "replay", `Replay ${what}`, count === 1 ? "" : "letters", `${count === 1 ? "It goes back to where it came from." : "They go back to where they came from, the oldest first."} ${words}`, body, `Replay ${text}`),
    button(state, path, "drop", `Drop ${what}`, "", `${count === 1 ? "It is" : "They are"} deleted for good. ${words}`, body, `Drop ${text}`)];
}

function described(filter) {
  const words = Object.entries(filter).map(([name, value]) => `${name} ${value}`);
  return words.length ? `Selected by ${words.join(", ")}.` : "No filter is set.";
}

function letterTable(queue, letters, app) {
  const columns = [["Message", "name"], ["Application", ""], ["Error", ""], ["From", ""], [queue.since, ""], ["Attempts", "n"], ["Reason", "wide"]].filter(([name]) => queue === dead || !["Application", "Error"].includes(name));
  const link = letter => `#/${queue.page}/${encode(letter.message_id)}?` + new URLSearchParams(letter.app || app ? { app: letter.app || app } : {});
  return table("Messages", columns, letters.map((letter, i) => [
    String(i), letter.message_id ? make("a", { href: link(letter) }, letter.message_id) : "(no id)", ...queue === dead ? [letter.app ? linked(letter.app) : "", letter.error || ""] : [], letter.origin || "", time(letter.failed_at), number(letter.attempts), letter.reason]), "None.");
}

// MARK: one

function oneLetter(queue, state, id, query) {
  const letter = state.letters?.letters[0], app = query.app || letter?.app, title = make("h1", {}, `${queue.one[0].toUpperCase()}${queue.one.slice(1)} ${id}`);
  const links = make("p", { class: "row" }, make("a", { href: `#/${queue.page}?` + new URLSearchParams(queue === held ? { app: query.app, look: 1 } : { look: 1 }) }, `All ${queue.many}`),
    app && make("a", { href: "#/search?" + new URLSearchParams({ app, by: "id", id }) }, "Its trace"));
  const replay = (state.jobs || []).find(job => job.action === "dead replay" && job.messages > 0 && job.filter.ids === id);
  const replayed = queue === dead && replay && `It was replayed at ${time(replay.began)}. `;
  if (letter?.message_id !== id) return [title, state.letters && replayed && make("p", {}, replayed, app && "Its trace shows what became of it."), make("p", { class: "note" }, state.refusals.letters || (state.letters ? state.letters.seen < state.letters.ready ? `It is not among the ${number(state.letters.seen)} oldest ${queue.many}.` : `It is not among the ${queue.many}.` : "Looking…")), links, jobTable(state)];
  const facts = [["Application", letter.app && linked(letter.app)], ["Error", letter.error], ["Reason", letter.reason], ["Status of the provider", letter.status], ["Attempts", letter.attempts],
    [queue.since, time(letter.failed_at)], ["From", letter.origin], ...Object.entries(letter.headers).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : value])];
  return [title, replayed && letter.failed_at > replay.began && make("p", {}, replayed, make("strong", {}, `It became a dead letter again at ${time(letter.failed_at)}.`)),
    links, card(null, make("div", { class: "row" }, changes(queue, state, { ...filters(query), id }, 1)),
    table("The message", [["Field", "name"], ["Value", "wide"]], facts.filter(([, value]) => value != null && value !== "").map(([name, value]) => [name, name, value.nodeType ? value : String(value)]), "")),
    card("Body", make("pre", { tabindex: "0" }, make("code", {}, letter.body ?? letter.body_base64 ?? "(too large to show)"))), jobTable(state)];
}

// MARK: jobs

export function jobTable(state) {
  if (!state.jobs?.length) return [];
  return card("Replays and deletions begun here", table("Operations", [["Action", "name"], ["Selection", "wide"], ["State", ""], ["Looked at", "wide"], ["Messages", "n"], ["By", ""], ["Begun", ""], ["", ""]], state.jobs.map(job => [
    String(job.job), job.action, [job.queue, Object.entries(job.filter).map(([name, value]) => `${name} ${value}`).join(", ")].filter(Boolean).join("; "),
    [pill(job.state, { running: "good", waiting: "calm", done: "calm", stopped: "warn" }[job.state]), job.failure && make("span", { class: "note" }, " ", job.failure)],
    job.expected > 0 && [make("progress", { value: job.state === "done" ? job.expected : job.done, max: job.expected, "aria-label": `${number(job.done)} of ${number(job.expected)} looked at` })],
    number(job.messages), job.by, time(job.began),
    ["running", "waiting"].includes(job.state) && button(state, "jobs/" + job.job, "stop", `Stop ${job.action} ${job.job}`, "", "It undoes nothing: handled messages stay handled.", {})]), "None."));
}
