import { duration, inline, make, markdown, number, rate, spark, table, time } from "./dom.js";
import { deadLetters, heldRequests, jobTable, jobs } from "./letters.js";
import { search } from "./search.js";
import { testSend } from "./testsend.js";
import { appField, button, card, encode, form, held, linked, only, pill, queue, sum } from "./parts.js";

// What each page asks for, besides the fleet's status, and what it shows of the answers.
const apps = "/v1/fleet/apps", lanes = "/v1/fleet/lanes", keys = "/v1/fleet/credentials", webhooks = "/v1/fleet/webhooks", campaigns = "/v1/fleet/campaigns?limit=50";
const list = (events, query) => "/v1/fleet/audit?" + new URLSearchParams({ limit: events, ...query });

export const pages = {
  fleet: { name: "Fleet", asks: () => ({ apps, lanes, credentials: keys, webhooks, campaigns }), show: fleet },
  apps: { name: "Applications", asks: ([app]) => app ? { apps, credentials: keys, webhooks, campaigns: `${campaigns}&app=${encode(app)}`, audit: list(10, { app }) } : { apps },
    show: (state, [app]) => app ? application(state, app) : applications(state) },
  lanes: { name: "Lanes", asks: () => ({ lanes, jobs }), show: allLanes },
  campaigns: { name: "Campaigns", asks: ([id], query) => id ? { campaign: "/v1/fleet/campaigns/" + encode(id), unreached: `/v1/fleet/campaigns/${encode(id)}/unreached?` + new URLSearchParams(query), audit: list(50, { subject: "campaign:" + id }) } : { campaigns },
    show: (state, [id], query) => id ? oneCampaign(state, id, query) : [make("h1", {}, "Campaigns"), card(null, campaignTable(state))] },
  dead: deadLetters,
  held: heldRequests,
  devices: { name: "Devices", asks: (args, { app, by, name }) => app && name ? { devices: "/v1/fleet/devices?" + new URLSearchParams({ app, [by]: moment(by, name) }) } : {}, show: devices },
  test: testSend,
  search,
  audit: { name: "Audit", asks: (args, query) => ({ audit: list(50, query) }), show: audit },
  runbook: { name: "Runbook", asks: () => ({}), show: state => [make("div", { class: "card" }, markdown(state.runbook || "# Runbook"))] },
};

const runbook = section => section && make("a", { href: "#/runbook/" + section.split("#").pop() }, "Runbook");

// MARK: what the status says

const waiting = (state, test) => sum(state.status.queues.filter(queue => test.test(queue.queue.slice(state.status.prefix.length))), queue => queue.ready);
const heldInAll = state => sum([...new Set(state.status.workers.flatMap(worker => worker.holds).map(hold => hold.app))], app => held(state, app));

/// The figures of an application, of all workers since each began. They are unknown without the fleet's status.
function figures(state, app) {
  if (!state.status) return { reasons: [] };
  const rows = state.status.workers.flatMap(worker => worker.apps || []).filter(row => row.app === app), reasons = {};
  for (const row of rows) for (const [code, count] of Object.entries(row.failed)) reasons[code] = (reasons[code] || 0) + count;
  return { inHand: sum(rows, row => row.in_hand), delivered: sum(rows, row => row.delivered), failed: sum(Object.values(reasons), count => count),
    reasons: Object.entries(reasons).sort((a, b) => b[1] - a[1]) };
}

/// Each problem with its severity, title, beginning, number of waiting messages, explanation, and section of the runbook. The broker
/// doesn't tell the beginning of some: they have the time since when this page has seen them.
export function problems(state) {
  const found = all(state), seen = found.filter(one => !one.since).map(({ title }) => [title, state.seen?.[title] || state.status?.at]);
  state.seen = Object.fromEntries(seen);
  return found.map(one => ({ ...one, seen: state.seen[one.title] }));
}

function all(state) {
  const { status } = state, found = [];
  const add = (kind, title, more = {}) => found.push({ kind, title, ...more });
  if (!status) {
    addOrders(state, add);
    return found;
  }
  if (status.problem) add("bad", "The broker gives no full state", { words: status.problem, section: "pushfleetnotready" });
  const unwritable = status.workers.filter(worker => worker.registry?.writable === false).length;
  if (unwritable) add("bad", `Workers that can't write to the registry: ${unwritable}`, { section: "pushfleetregistryreadonly" });
  if (status.silent_shards) add("bad", `Shards that consume and don't answer: ${status.silent_shards}`, { words: "A worker hangs, or was ended a moment ago.", section: "pushfleetnotready" });
  for (const { worker, gone } of state.workers.values()) if (gone) add("bad", `Worker ${worker} is gone`, { since: gone, words: "Other workers take over its requests. Start it again if nobody stopped it.", section: "pushfleetdown" });
  if (!status.workers.length && !status.problem) add("bad", "No worker answers", { waits: waiting(state, /^\.(send|fanout)\./), words: "Start one: `pushfleet worker`.", section: "pushfleetdown" });
  const pools = new Map();
  for (const worker of status.workers) {
    if (worker.state !== "ok") add(worker.state === "draining" ? "warn" : "bad", `Worker ${worker.worker}: ${worker.state}`, { section: "pushfleetnotready" });
    if (worker.stuck) add("warn", `Worker ${worker.worker}: publications wait for a queue`, { waits: worker.stuck, section: "pushfleetpublicationsstuck" });
    for (const pool of worker.pools.filter(pool => pool.state === "in trouble")) {
      const known = pools.get(pool.name);
      if (!known || pool.since < known.since) pools.set(pool.name, pool);
    }
  }
  for (const pool of pools.values()) {
    const app = state.me.apps.find(app => pool.name.startsWith(app + " "));
    add("bad", `${pool.name}: ${pool.reason || "in trouble"}`, { app, since: pool.since, waits: app && held(state, app), words: pool.remedy, section: pool.runbook });
  }
  const dead = queue(state, "dead")?.ready, quarantine = queue(state, "quarantine")?.ready;
  if (quarantine) add("bad", "Requests in quarantine", { waits: quarantine, words: "They have ended a worker, or are suspected of it.", section: "pushfleetquarantine" });
  if (dead) add("warn", "Dead letters", { waits: dead, words: "Look at them, then replay or drop them.", link: "#/dead?look=1", section: "pushfleetdeadletters" });
  addOrders(state, add);
  return found;
}

/// The sum of a figure of a lane's queues: `send.normal`, `send.normal.1` and so on.
const inLane = (state, lane, figure) => state.status && sum(state.status.queues.filter(one =>
  one.queue.slice(state.status.prefix.length + 1).replace(/\.\d+$/, "") === lane), one => one[figure]);

/// The problems that operators' own orders cause.
function addOrders(state, add) {
  for (const one of state.apps || []) if (one.state !== "running") add("warn", `${one.app} is ${one.state}`, { app: one.app, since: one.since, waits: held(state, one.app), ...toResume(one), section: "pushfleetholdqueue" });
  for (const one of state.credentials || []) if (one.state !== "running" && !one.sender) add("warn", `Credential ${one.credential} is ${one.state}`, { app: owner(one), since: one.since, waits: one.waiting, ...toResume(one), section: "pushfleetholdqueue" });
  for (const one of state.webhooks || []) if (one.state !== "running") add("warn", `Webhook ${one.webhook} is ${one.state}`, { app: owner(one), since: one.since, ...toResume(one), section: "pushfleetwebhookpaused" });
  for (const one of state.lanes || []) if (one.state !== "running") add("warn", `Lane ${one.lane} is ${one.state}`, { since: one.since, waits: inLane(state, one.lane, "ready"), ...toResume(one), link: "#/lanes", section: "pushfleetbacklog" });
  for (const one of state.campaigns || []) if (one.state === "held") add("bad", `Campaign ${one.id} of ${one.app} is held`, { app: one.app, since: one.updated_at, waits: one.remaining, words: "An abnormal share of its tokens was refused. Resume or cancel it.", section: "pushfleetcampaignheld" });
    else if (one.state === "paused") add("warn", `Campaign ${one.id} of ${one.app} is paused`, { app: one.app, since: one.updated_at, waits: one.remaining, words: "Resume it when the reason is gone, or cancel it", section: "pushfleetcampaignstandsstill" });
}

const by = one => [one.by && `By ${one.by}`, one.reason && `because: ${one.reason}`, one.until && `until ${time(one.until)}`].filter(Boolean).join(", ");
const toResume = one => ({ by: by(one), words: "Resume it when the reason is gone" });

const problemList = found => make("ul", { class: "problems", "aria-label": "Problems" }, found.map(one => make("li", { class: one.kind }, make("strong", {}, one.link || one.app ? make("a", { href: one.link || "#/apps/" + encode(one.app) }, one.title) : one.title),
  make("p", {}, one.since ? `Since ${time(one.since)}. ` : one.seen && `Seen since ${time(one.seen)}. `, one.waits > 0 && `${number(one.waits)} waiting. `, one.by && sentence(one.by) + " ", one.words && [inline(sentence(one.words)), " "], runbook(one.section)))));
const sentence = words => words[0].toUpperCase() + words.slice(1) + (words.endsWith(".") ? "" : ".");

// MARK: pages

function fleet(state) {
  if (!state.status) return [make("h1", {}, "Fleet"), card(null, make("p", {}, "The key sees some of the applications. The state of the whole fleet needs a key for all of them."))];
  const { status } = state, workers = status.workers, last = state.rates.at(-1) || {};
  const tile = (name, value, line) => make("div", {}, make("dt", {}, name), make("dd", {}, value), line && spark(state.rates.map(line)));
  return [
    make("h1", {}, "Fleet ", make("span", { class: "note" }, `${status.prefix}, ${time(status.at)}`)),
    problemList(problems(state)),
    make("dl", { class: "tiles" }, tile("Accepted a second", rate(last.delivered), point => point.delivered), tile("Failed a second", rate(last.failed), point => point.failed),
      tile("In hand", number(sum(workers, worker => worker.in_hand))), tile("Waiting in lanes", number(waiting(state, /^\.(send|fanout)\./))),
      tile("Held", number(heldInAll(state))), tile("Dead letters", number(queue(state, "dead")?.ready))),
    card("Workers", table("Workers", [["Worker", "name"], ["State", ""], ["Up", "n"], ["In hand", "n"], ["Accepted/s", "n"], ["Failed/s", "n"], ["Accepted", "n"], ["Failed", "n"], ["Memory", "n"]],
      [...state.workers.values()].sort((a, b) => a.worker < b.worker ? -1 : 1).map(one => [one.worker, one.worker, pill(one.gone ? "gone" : one.state), ...one.gone ? [make("span", {}, time(one.gone))] : [
        duration((Date.parse(status.at) - Date.parse(one.started_at)) / 1000), number(one.in_hand), rate(one.delivered_per_second), rate(one.failed_per_second), number(one.delivered), number(one.failed),
        `${number(one.resident_bytes / 1048576)} MiB`]]), "No worker answers.")),
    card("Queues", table("Queues", [["Queue", "name"], ["Ready", "n"], ["Consumers", "n"]], status.queues.filter(one => one.ready || one.ready == null || /\.(send\.|dead$)/.test(one.queue))
      .map(one => [one.queue, one.queue, one.ready == null ? "missing" : number(one.ready), number(one.consumers)]), "None.")),
    card("Credentials", table("Credentials", [["Credential", "name"], ["State", ""], ["Connections", "n"], ["On streams", "n"]], credentials(state), "None has been used."),
      make("p", { class: "note" }, "Applications with the same credential and topic, or the same package, share a row. It has the name of the first one.")),
  ];
}

function credentials({ status: { workers }, credentials: configured }) {
  const names = new Map();
  for (const pool of workers.flatMap(worker => worker.pools)) names.set(pool.name, [...names.get(pool.name) || [], pool]);
  const used = [...names].sort().map(([name, pools]) => [name, name, pill(["in trouble", "paused"].find(state => pools.some(pool => pool.state === state)) || "ok"), number(sum(pools, pool => pool.connections)), number(sum(pools, pool => pool.streams))]);
  // The first push opens a pool of web push. An answer has up to 50 pools.
  if (!workers.length || workers.some(worker => worker.pools.length >= 50)) return used;
  const unused = (configured || []).map(one => ({ ...one, name: one.credential.replace("/senders/", ".senders.").replace(/\/webpush$/, " web push") }))
    .filter(({ name }) => name.endsWith(" web push") && !used.some(([known]) => known.startsWith(name + " ")));
  return [...used, ...unused.map(({ name, state }) => [name, name, state === "running" ? pill("not used yet", "calm") : pill(state), "0", "0"])];
}

const control = one => [pill(one.state), " ", make("span", { class: "note" }, one.state !== "running" && [one.sender && "with its sender, ", `since ${time(one.since)}. `, by(one)])];

/// The buttons that change the state of an application, a lane or a credential.
function orders(state, path, what, one, waits, words) {
  const pause = button(state, path, "pause", `Pause ${what}`, "until", words.pause);
  return [
    one.state === "running" ? pause : button(state, path, "resume", `Resume ${what}`, "", `${words.resume || "The waiting requests are sent."}${waits ? ` ${number(waits)} wait.` : ""}`),
    one.state === "paused" && button(state, path, "pause", `Pause ${what} again`, "until", "The new end and reason take the place of the present ones.", null, "Change"),
    one.state === "draining" ? pause : button(state, path, "drain", `Drain ${what}`, "", words.drain),
    one.state === "paused" && words.discard && button(state, path, "discard", `Discard what waits for ${what}`, "", `${waits == null ? "" : `${number(waits)} wait. `}${words.discard}`, {}, "Discard"),
  ];
}

function operations(state, one) {
  const path = "apps/" + encode(one.app);
  return make("div", { class: "row" }, orders(state, path, one.app, one, held(state, one.app), {
    pause: "Its requests wait in its hold queue. Pushes that are being sent still reach devices.", drain: "Waiting requests are sent, and new ones are refused as dead letters." }),
    button(state, path, "rate", `Set the limit of ${one.app}`, "rate=" + (one.rate ?? ""), "Limits its pushes. Requests beyond the limit wait.", null, "Limit"));
}

/// The application of a credential or a webhook, which is the beginning of its name.
const owner = one => (one.credential || one.webhook).split("/")[0];

function credentialTable(state, app) {
  return table("Credentials and senders", [["Credential", "name"], ["State", "wide"], ["Waiting", "n"], ["", "wide"]], (state.credentials || []).filter(one => owner(one) === app).map(one => {
    const path = "credentials/" + encode(one.credential), what = one.credential;
    const waits = one.state === "paused" && !one.sender ? one.waiting || 0 : null;
    return [what, what.slice(app.length + 1), control(one), number(waits), make("div", { class: "row" }, !one.sender && orders(state, path, what, one, waits, {
      resume: "The waiting pushes are sent, the last ones a minute later.", pause: "Nothing is sent with it. Its pushes wait on the retry ladder, those with other credentials are sent.", drain: "Waiting pushes are sent, and those of new requests are refused as dead letters.",
      discard: "They fail as Cancelled when they return from the retry ladder, without a dead letter. The credential stays paused." }))];
  }), "None.");
}

function webhookTable(state, hooks) {
  return table("Webhooks", [["Webhook", "name"], ["State", "wide"], ["", "wide"]], hooks.map(one => {
    const path = "webhooks/" + encode(one.webhook), what = `Webhook ${one.webhook}`;
    return [one.webhook, one.webhook.slice(owner(one).length + 1), control(one), make("div", { class: "row" }, one.state === "running"
      ? button(state, path, "pause", `Pause ${what}`, "until", "Its events wait in its queue, which keeps the newest 250,000.") : button(state, path, "resume", `Resume ${what}`))];
  }), "None.");
}

const appColumns = [["Application", "name"], ["State", "wide"], ["Limit", "n"], ["In hand", "n"], ["Held", "n"], ["Accepted", "n"], ["Failed", "n"], ["", "wide"]];
function appRow(state, one) {
  const its = figures(state, one.app);
  return [one.app, linked(one.app), [control(one), problems(state).some(found => found.app === one.app && found.kind === "bad") && pill("in trouble")], one.rate == null ? "–" : `${number(one.rate)}/s`, number(its.inHand), make("a", { href: `#/held?app=${encode(one.app)}&look=1`, "aria-label": `Held requests of ${one.app}` }, number(held(state, one.app))), number(its.delivered), number(its.failed), operations(state, one)];
}

function applications(state) {
  return [make("h1", {}, "Applications"), card(null, table("Applications", appColumns, (state.apps || []).map(one => appRow(state, one)), "The key has no configured application."))];
}

function application(state, app) {
  const one = (state.apps || []).find(one => one.app === app), its = figures(state, app), hooks = (state.webhooks || []).filter(one => owner(one) === app);
  if (!one) return [make("h1", {}, app), make("p", {}, state.apps ? "The key is not for this application." : "")];
  return [make("h1", {}, app), problemList(problems(state).filter(one => one.app === app)), card(null, table("The application", appColumns, [appRow(state, one)], "")),
    card("Credentials and senders", credentialTable(state, app)), hooks.length > 0 && card("Webhooks", webhookTable(state, hooks)),
    card("Failed pushes by reason", table("Failed pushes by reason", [["Reason", "name"], ["Pushes", "n"], ["Share", "n"]],
      its.reasons.map(([code, count]) => [code, code === "NotRegistered" ? code : make("a", { href: "#/dead?" + new URLSearchParams({ app, error: code, look: 1 }), "aria-label": `Dead letters with ${code}` }, code), number(count), `${(100 * count / its.failed).toFixed(1)} %`]), state.status ? "None since the workers began." : "Only a key for all applications sees them.")),
    card("Campaigns", campaignTable(state)), card("Operations", auditTable(state.audit || []))];
}

function allLanes(state) {
  return [make("h1", {}, "Lanes"), card(null, table("Lanes", [["Lane", "name"], ["State", "wide"], ["Waiting", "n"], ["Consumers", "n"], ["", "wide"]], (state.lanes || []).map(one => [
    one.lane, one.lane, control(one), number(inLane(state, one.lane, "ready")), number(inLane(state, one.lane, "consumers")),
    make("div", { class: "row" }, state.status && orders(state, "lanes/" + one.lane, `lane ${one.lane}`, one, inLane(state, one.lane, "ready"), {
      pause: "The requests of all applications wait in this lane.", drain: "Waiting requests are sent, and new ones are refused as dead letters.",
      discard: "The requests of all applications are deleted for good, without an outcome. The lane stays paused." }))]), "None."),
    !state.status && make("p", { class: "note" }, "A lane has the requests of all applications. Only a key for all of them controls it.")), jobTable(state)];
}

function campaignButtons(state, one) {
  const path = "campaigns/" + one.id, name = `the campaign to ${one.target || one.id}, begun ${time(one.created_at)}`;
  return make("div", { class: "row" }, one.state === "running" && button(state, path, "pause", `Pause ${name}`, "", "Sending stops within a few seconds."),
    ["paused", "held"].includes(one.state) && button(state, path, "resume", `Resume ${name}`),
    ["running", "paused", "held"].includes(one.state) && button(state, path, "cancel", `Cancel ${name}`, "", `Up to ${number(one.remaining)} devices won't get it. Sending stops within a few seconds. A cancelled campaign can't be resumed.`));
}

function progress(one) {
  const done = one.sent + one.failed + (one.unknown || 0), all = done + (one.remaining || 0);
  return [make("progress", { value: done, max: Math.max(all, 1), "aria-label": `Campaign ${one.id}: ${number(done)} of ${number(all)} devices` }), make("span", { class: "note" }, `${number(done)} of ${number(all)}`)];
}

function campaignTable(state) {
  return table("Campaigns", [["Campaign", "name"], ["Application", ""], ["State", ""], ["Progress", "wide"], ["Accepted", "n"], ["Failed", "n"], ["Time left", "n"], ["Begun", ""], ["", "wide"]], (state.campaigns || []).map(one => [
    one.id, [make("a", { href: "#/campaigns/" + encode(one.id) }, one.target || one.id), make("div", { class: "note" }, one.message_id)], linked(one.app), pill(one.state), progress(one), number(one.sent), number(one.failed), duration(one.seconds_left), time(one.created_at), campaignButtons(state, one)]), "There is none.");
}

function oneCampaign(state, id, query) {
  const one = state.campaign;
  if (one?.id !== id) return [make("h1", {}, `Campaign ${id}`)];
  const facts = [["Application", linked(one.app)], ["State", pill(one.state)], ["Accepted", number(one.sent)], ["Failed", number(one.failed)], ["Remaining", number(one.remaining)], ["Received", number(one.received)], ["Read", number(one.read)]];
  return [make("h1", {}, `Campaign ${one.target || id}`),
    card(null, progress(one), make("p", { class: "note" }, "Message ", make("a", { href: "#/search?" + new URLSearchParams({ app: one.app, by: "id", id: one.message_id }) }, one.message_id), `. Begun ${time(one.created_at)}. `, one.finished_at ? `Finished ${time(one.finished_at)}. ` : one.seconds_left ? `About ${duration(one.seconds_left)} left. ` : "", "The counts change at the end of each page of up to 1,000 devices. The counts of a stopped page change when the page goes on or ends."), campaignButtons(state, one)),
    make("dl", { class: "tiles" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    card("Failed devices by reason", table("Failed devices by reason", [["Reason", "name"], ["Platform", ""], ["Devices", "n"]], (one.failures || []).map(row => [`${row.error} ${row.platform}`, row.error, row.platform || "", number(row.count)]), "None."),
      one.failed > 0 && make("p", {}, make("a", { href: "#/dead?" + new URLSearchParams({ app: one.app, id: one.message_id, look: 1 }) }, "Dead letters of its message, if there are any"))),
    (one.failed > 0 || query.after) && card("Devices that were not reached", unreachedTable(state, one),
      make("p", { class: "row" }, query.after && make("a", { href: `#/campaigns/${encode(id)}` }, "First"),
        state.unreached?.length >= 50 && make("a", { href: `#/campaigns/${encode(id)}?after=${state.unreached.at(-1).number}` }, "More"))),
    card("Operations", auditTable(state.audit || []))];
}

function unreachedTable(state, one) {
  const again = device => device.registered_at > one.created_at ? "again " : "";
  return [table("Devices that were not reached", [["Registration", "name"], ["Error", ""], ["Platform", ""], ["State now", ""], ["User", ""], ["Installation", ""]], (state.unreached || []).map(device => [
    device.registration, make("a", { href: "#/search?" + new URLSearchParams({ app: one.app, by: "token", id: device.registration }) }, device.registration), device.error, device.platform || "", [device.state, device.state === "active" && make("span", { class: "note" }, ` registered ${again(device)}${time(device.registered_at)}`)], device.user || "", device.installation || ""]), "None is listed."),
    (state.unreached || []).some(device => device.error === "NotRegistered" && device.state === "active") && make("p", { class: "note" }, "A device with NotRegistered stays active in two cases: it was registered after the provider's time of the removal, or too many tokens were refused at once.")];
}

function auditTable(events) {
  return table("Operations", [["Time", ""], ["Operator", "name"], ["Action", ""], ["Subject", "wide"], ["Details", ""], ["Reason", "wide"]], events.map(one => [
    one.number, time(one.at), [one.actor, make("span", { class: "note" }, ` from ${one.origin}`)], one.action, one.subject, details(one), one.reason || ""]), "There is none.");
}

const limit = rate => rate ? `${number(rate)}/s` : "no limit";

/// The effect of an operation, from the states before and after it.
function details({ action, before, after }) {
  const { rate, until, messages, filter, target, devices, rights } = after;
  return [before.state !== after.state && `${before.state} → ${after.state}`, action === "rate" && `${limit(before.rate)} → ${limit(rate)}`, action === "pause" && until && `until ${time(until)}`, action === "discard" && messages == null && "its waiting pushes fail as Cancelled", messages != null && (messages === 1 ? "1 message" : `${number(messages)} messages`),
    filter && Object.entries(filter).map(([name, value]) => `${name} ${value}`).join(", "), target && `to a ${target}`, devices != null && (devices === 1 ? "1 device" : `${number(devices)} devices`),
    rights && `for ${rights.join(", ")}`].filter(Boolean).join("; ");
}

/// A date alone is its beginning in UTC.
const moment = (by, name) => by === "gone_since" && /^\d{4}-\d\d-\d\d$/.test(name) ? name + "T00:00:00Z" : name;

const testLink = (state, app, to, words = "Test") => state.me.rights.includes("operate") && make("a", { href: "#/test?" + new URLSearchParams({ app, to }), "aria-label": `Send a test to ${to}` }, words);

function devices(state, args, query) {
  const columns = [["Registration", "name"], ["Platform", ""], ["State", ""], ["User", ""], ["Installation", ""], ["Topics", "wide"], ["Badge", "n"], ["Registered", ""], ["Seen", ""], ["", ""]];
  return [make("h1", {}, "Devices"),
    form("devices", appField(state, query.app || only(state)), make("label", {}, "by ", make("select", { name: "by" },
      [["user", "User"], ["installation", "Installation"], ["device", "Token or registration"], ["gone_since", "Gone since"]].map(([value, name]) => make("option", { value, selected: value === query.by }, name)))),
      make("label", {}, "Name, token or time ", make("input", { name: "name", value: query.name, autocomplete: "off", placeholder: query.by === "gone_since" ? "2026-11-20T21:22:00Z" : null })), make("button", {}, "Find")),
    state.refusals.devices && make("p", { class: "bad", role: "alert" }, state.refusals.devices),
    query.name && !state.refusals.devices && card(`Devices of ${query.app}`, table("Devices", columns, (state.devices || []).map(one => [
      one.registration, one.registration, [one.platform, " ", make("span", { class: "note" }, one.kind)], [pill(one.state, one.state === "active" ? "good" : "warn"), " ", make("span", { class: "note" }, one.state !== "active" && `${one.reason || ""} since ${time(one.state_since)}`)],
      one.user || "", one.installation || "", one.topics.join(", "), one.badge ?? "", time(one.registered_at), time(one.last_seen),
      [make("a", { href: "#/search?" + new URLSearchParams({ app: query.app, by: "token", id: one.registration }), "aria-label": `Last pushes to ${one.registration}` }, "Pushes"), " ",
      one.state === "active" && testLink(state, query.app, one.registration)]]), "There is none."),
      query.by === "user" && make("div", { class: "row" }, (state.devices || []).some(one => one.state === "active") && testLink(state, query.app, "/users/" + encode(query.name), "Send a test"), button(state, "apps/" + encode(query.app), "forget", `Forget the user ${query.name}`, "",
        "Deletes the user, the devices with their tokens, topics and badges, and the memberships of groups, for good. Messages in queues, dead letters, results, the trace and campaigns to the user stay as long as is configured. The audit doesn't name the user, so the reason shouldn't either.", { user: query.name }, "Forget this user")))];
}

function audit(state, args, query) {
  const events = state.audit || [], to = more => "#/audit?" + new URLSearchParams({ ...query, ...more });
  return [make("h1", {}, "Audit"),
    form("audit", appField(state, query.app), make("button", {}, "Show")),
    card(query.app ? `Operations on ${query.app}` : "All operations", auditTable(events),
      make("p", { class: "row" }, query.before && make("a", { href: query.app ? `#/audit?app=${encode(query.app)}` : "#/audit" }, "Newest"), events.length >= 50 && make("a", { href: to({ before: events.at(-1).number }) }, "Older")))];
}
