import { duration, inline, make, morph, number, rate, spark, table, time } from "./dom.js";
import { card, pill, sum, tell, verdict } from "./parts.js";

// Milliseconds between two reports and between two samples, and the time that rates, tables and lines are about.
const period = 2000, pause = 5000, moment = 10000, minute = 60000, span = 15 * minute;
const at = id => document.getElementById(id);
/// The last report, and samples of earlier ones. Those of /history.json are without `apps` and `times`.
let status = null, samples = [], failures = 0, timer = 0;

const codes = (app, kind) => app.pushes.flatMap(row => Object.entries(row[kind]));
// Collapsed and cancelled pushes are not wanted any more, so they have not failed.
const figures = app => ({ delivered: sum(app.pushes, row => row.delivered), failed: sum(codes(app, "failed"), ([code, count]) => !["Collapsed", "Cancelled"].includes(code) && count) });

function sampleOf({ at, totals, process, times: { histograms }, apps }) {
  const answers = histograms.filter(one => one.name === "provider_answer").map(one => one.counts).reduce((all, list) => all.map((count, i) => count + list[i]));
  return { at: Date.parse(at), delivered: totals.delivered, failed: totals.failed, retried: totals.retried, dead: totals.dead_letters, cpu: process.cpu_seconds, answers,
    apps: new Map(apps.map(app => [app.app, figures(app)])), times: histograms.map(one => one.counts) };
}

/// The increase of a count per second; null without an earlier sample.
const perSecond = (name, old, last) => last.at > old.at ? Math.max(0, last[name] - old[name]) * 1000 / (last.at - old.at) : null;

/// The time within which a share of the measured ones ended; null if there is none. Those above the last bound count as the bound.
function quantile(share, bounds, counts, old = []) {
  const fresh = counts.map((count, i) => count - (old[i] || 0));
  let rest = share * sum(fresh, count => count);
  const i = fresh.findIndex(count => count > 0 && (rest -= count) <= 0), low = bounds[i - 1] || 0;
  return i < 0 ? null : i === bounds.length ? low : bounds[i] + (bounds[i] - low) * rest / fresh[i];
}
const short = seconds => seconds == null ? "–" : seconds < 10 ? `${number(seconds * 1000)} ms` : duration(seconds);
const share = (part, all) => all ? `${(100 * part / all).toFixed(1)} %` : "–";

/// Each problem with its kind, title and explanation.
function problems() {
  const { now, pools, registry } = status, found = [], age = Date.parse(status.at);
  const add = (is, kind, title, words = "") => is && found.push({ kind, title, words });
  add(failures > 1, "bad", "No answer", `The worker has ended, or can't be reached. The figures are of ${time(status.at)}.`);
  add(status.live !== "ok", "bad", "Hanging", status.live);
  add(status.ready === "draining", "warn", "Draining", "It takes no requests any more.");
  add(!["ok", "draining"].includes(status.ready), "bad", status.broker.connected ? "Not ready" : "No broker", status.ready);
  add(status.broker.blocked, "bad", "Broker blocks", "It has too little memory or disk. Requests wait unacknowledged.");
  add(registry && !registry.up, "bad", "Registry down", "Sends to topics, groups and registrations wait. Sends to provider tokens go on.");
  add(registry?.up && !registry.writable, "warn", "Registry read-only", "Changes, campaigns and acknowledgements wait.");
  for (const pool of pools) add(!pool.credential_ok || pool.in_trouble, pool.credential_ok ? "warn" : "bad", `${pool.credential_ok ? "Provider in trouble" : "Credential refused"}: ${pool.pool}`,
    [pool.reason, pool.remedy && `What to do: ${pool.remedy} (${pool.runbook})`].filter(Boolean).join(". "));
  for (const one of status.controls) for (const kind of ["app", "lane", "credential", "webhook"]) add(one[kind] && one.state !== "running", "warn", `The ${kind} ${one[kind]} is ${one.state}`,
    [one.by && `By ${one.by}`, one.reason && `because: ${one.reason}`, one.until && `until ${time(one.until)}`].filter(Boolean).join(", "));
  for (const app of status.open_breakers) add(true, "bad", `Breaker open: ${app}`, "An abnormal share of its tokens is refused. No token is marked as gone, and campaigns are held.");
  add(status.campaigns?.held, "warn", `Held campaigns: ${status.campaigns?.held}`, "They wait for an operator: `pushfleet campaigns resume` or `cancel`.");
  add(now.stuck, "warn", `Stuck publications: ${number(now.stuck)}`, "Their queue is full or without a leader.");
  add(now.oldest_age_seconds > 300, "warn", "Old request", `It has been in hand for ${duration(now.oldest_age_seconds)}.`);
  add(now.loop_lag_seconds > 1, "warn", "Late loop", `A shard was ${short(now.loop_lag_seconds)} late: it has too little CPU, or something blocks it.`);
  for (const { credential, not_after: end } of status.expiries) add(Date.parse(end) - age < 14 * 86400000, Date.parse(end) < age ? "bad" : "warn", `Certificate ${Date.parse(end) < age ? "has ended" : "ends"}: ${credential}`, time(end));
  return found;
}

const earlier = (last, milliseconds, some = samples) => some.find(one => last.at - one.at <= milliseconds) || last;
const tile = (name, value, words, line) => make("div", {}, make("dt", {}, name), make("dd", {}, value), words && make("dd", { class: "note" }, words),
  line && spark(samples.slice(1).map((one, i) => line(samples[i], one) || 0)));
const counts = (title, [heading, ...names], rows, none) => card(title, table(title, [[heading, "name"], ...names.map(name => [name, "n"])], rows.map(row => [row[0], ...row]), none));

function activity(last, dead) {
  const { now, totals, queues, times } = status, recent = earlier(last, moment), { bounds } = times.histograms.find(one => one.name === "provider_answer");
  const counted = (title, name, words = "") => tile(title, rate(perSecond(name, recent, last)), `${number(totals[name])} in all${words}`, (a, b) => perSecond(name, a, b));
  const answered = (part, a, b) => quantile(part, bounds, b.answers, a.answers);
  return make("dl", { class: "tiles" }, counted("Accepted a second", "delivered"), counted("Failed a second", "failed"), counted("Tried again a second", "retried", `, ${number(totals.parked)} parked`),
    tile("Provider answers, 95 %", short(answered(.95, recent, last)), `half within ${short(answered(.5, recent, last))}`, (a, b) => 1000 * answered(.95, a, b)),
    tile("In hand", number(now.in_hand), `oldest ${short(now.oldest_age_seconds)}, ${number(now.in_flight)} on streams`),
    tile("Dead letters", number(queues?.[dead]), `in the queue, ${number(totals.dead_letters)} from here`, (a, b) => perSecond("dead", a, b)));
}

function application(app, last, old) {
  const its = last.apps.get(app.app), then = old.apps.get(app.app) || { delivered: 0, failed: 0 };
  return [app.app, ...["delivered", "failed"].map(name => rate(perSecond(name, { ...then, at: old.at }, { ...its, at: last.at }))), number(its.delivered), number(its.failed),
    ...["retried", "dead_letters"].map(kind => number(sum(codes(app, kind), ([, count]) => count))), number(app.ledger.in_hand), number(status.holds.find(one => one.app === app.app)?.ready || 0)];
}

function outcomes() {
  const errors = {};
  for (const [code, count] of status.apps.flatMap(app => codes(app, "failed"))) errors[code] = (errors[code] || 0) + count;
  const rows = [["Accepted", status.totals.delivered], ...Object.entries(errors).sort((a, b) => b[1] - a[1])], all = sum(rows, ([, count]) => count);
  return rows.map(([code, count]) => [code, number(count), share(count, all)]);
}

function measured(one, old) {
  const names = { publish_to_answer: "Publish to answer", provider_answer: "Provider answer", broker_confirm: "Broker confirm", apns: "APNs", fcm: "FCM", webpush: "web push" };
  return [[one.name, one.provider, one.lane].filter(Boolean).map(word => names[word] || word).join(", "), ...[.5, .95, .99].map(part => {
    const seconds = quantile(part, one.bounds, one.counts, old);
    // The messages' time of publishing has whole seconds.
    return !one.whole_seconds || seconds == null ? short(seconds) : seconds <= 1 ? "< 1 s" : duration(seconds);
  })];
}

function page(found) {
  const { process, now } = status, last = sampleOf(status), old = earlier(last, minute, samples.filter(one => one.apps)), isFresh = last.at === old.at;
  const queues = [...Object.entries(status.queues || {}), ...status.holds.map(one => [`hold ${one.app}`, one.ready])], dead = queues.find(([name]) => name.endsWith(".dead"))?.[0] || "";
  const facts = [`fleet ${dead.replace(/\.dead$/, "") || "–"}`, `version ${status.version}`, `up ${duration((last.at - Date.parse(status.started_at)) / 1000)}`, `${status.shards_ready} of ${status.shards} shards connected`, time(status.at)];
  return [make("h1", {}, `Worker ${status.worker} `, make("span", { class: "note" }, facts.join(", "))),
    make("ul", { class: "problems", "aria-label": "Problems" }, found.map(({ kind, title, words }) => make("li", { class: kind }, make("strong", {}, title), make("p", {}, inline(words))))),
    activity(last, dead),
    counts("Applications", ["Application", "Accepted/s", "Failed/s", "Accepted", "Failed", "Tried again", "Dead letters", "In hand", "Held"], status.apps.map(app => application(app, last, old)), "No request has come."),
    card("Credentials and connections", table("Credentials and connections", [["Credential", "name"], ["State", ""], ["Connections", "n"], ["On streams", "n"]], status.pools.map(pool => [pool.pool, pool.pool,
      pill(pool.credential_ok ? pool.state : "refused", pool.credential_ok && pool.in_trouble && "warn"), number(pool.connections), number(pool.streams)]), "None is configured.")),
    make("div", { class: "beside" }, counts("Outcomes since the start", ["Outcome", "Pushes", "Share"], outcomes()),
      counts(`Times ${isFresh ? "since the start" : "of the last minute"}`, ["", "50 %", "95 %", "99 %"], status.times.histograms.map((one, i) => measured(one, isFresh ? [] : old.times[i])).filter(row => row[1] !== "–"), "Nothing was measured."),
      card("Dead letters by reason", table("Dead letters", [["Reason", "wide"], ["Error", ""], ["Application", "name"], ["Count", "n"]],
        status.dead_letters.slice(0, 12).map(one => [`${one.app} ${one.error} ${one.reason}`, one.reason, one.error, one.app, number(one.count)]), "None.")),
      counts("Queues of the fleet", ["Queue", "Ready"], queues.filter(([name, ready]) => ready || /\.(send\.|dead$|feedback$)/.test(name)).map(([name, ready]) => [name, number(ready)]), "The broker has not been asked.")),
    status.campaigns && card("Campaigns of the fleet", make("p", { class: "note" }, Object.entries(status.campaigns).map(([state, count]) => `${number(count)} ${state}`).join(", ")),
      table("Latest campaigns", [["Application", "name"], ["State", ""], ["Accepted", "n"], ["Failed", "n"], ["Left", "n"], ["Begun", ""]],
        status.latest_campaigns.map(one => [one.campaign, one.app, pill(one.state), number(one.sent), number(one.failed), number(one.remaining), time(one.created_at)]), "")),
    make("dl", { class: "tiles" }, tile("CPU", share(perSecond("cpu", earlier(last, moment), last), 1)), tile("Memory", `${number(process.resident_bytes / 1048576)} MiB`), tile("Descriptors", number(process.open_fds), `of ${number(process.max_fds)}`),
      tile("Unconfirmed publications", number(now.unconfirmed)), tile("Answers that never came", number(status.totals.unknown)), tile("Lost broker connections", number(status.broker.connections_ended)))].filter(Boolean);
}

function show() {
  const found = status ? problems() : [{ kind: "bad", title: "No answer" }];
  tell(at("state"), ...verdict(found));
  if (status) morph(at("page"), page(found));
}

const ask = path => fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) }).then(answer => answer.ok ? answer.json() : null).catch(() => null);
async function poll() {
  const fresh = await ask("/status.json");
  failures = fresh ? 0 : failures + 1;
  if (fresh) {
    // Another process counts from zero.
    if (status && fresh.started_at !== status.started_at) samples = [];
    const sample = sampleOf(status = fresh);
    samples = samples.filter(one => sample.at - one.at <= span);
    if (!samples.at(-1)?.apps || sample.at - samples.at(-1).at >= pause) samples.push(sample);
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(poll, period);
  show();
}
document.addEventListener("visibilitychange", () => document.hidden ? clearTimeout(timer) : poll());
samples = (await ask("/history.json"))?.samples.map(([at, delivered, failed, retried, parked, dead, cpu, ...answers]) => ({ at, delivered, failed, retried, dead, cpu, answers })) || [];
poll();
