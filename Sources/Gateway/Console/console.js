import { make, morph, number } from "./dom.js";
import { pages, problems } from "./pages.js";
import { sum, tell, verdict } from "./parts.js";

// Milliseconds between two states, and the time for which a worker that is gone is shown; states that the rates' lines show.
const period = 2000, memory = 15 * 60 * 1000, span = 60;
const at = id => document.getElementById(id);
/// `workers` has the last answer of each worker by name, with `gone` for one that no longer answers.
const nothing = () => ({ me: null, status: null, workers: new Map(), rates: [], refusals: {} });
// Each login has a state of its own, so a late answer for one login is never shown to the next.
let state = nothing();
// `again` makes a page ask again for what it asks only once.
let timer = 0, shown = "", failures = 0, round = 0, again = false;
// The place of the focus whose element is gone, until the page shows the effect of an operation.
let lost = null;

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

/// A text is sent as it is.
async function ask(path, body, headers) {
  const options = { cache: "no-store", signal: AbortSignal.timeout(10000), headers: { "X-Pushfleet-Console": "1", ...headers } };
  if (body) {
    Object.assign(options, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
    options.headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options), json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, json.reason || `status ${answer.status}`);
  return json;
}

/// A text that isn't percent-encoded stays as it is.
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function place() {
  const [path, query] = location.hash.slice(2).split("?"), [name, ...args] = path.split("/").map(decoded);
  return { page: Object.hasOwn(pages, name) ? pages[name] : pages.fleet, args, query: Object.fromEntries(new URLSearchParams(query)) };
}

// MARK: live

function remember(status) {
  const now = Date.parse(status.at), rates = ["delivered", "failed"].map(name => [name, sum(status.workers, worker => worker[name + "_per_second"])]);
  for (const worker of status.workers) state.workers.set(worker.worker, worker);
  if (status.at !== state.status?.at) state.rates = [...state.rates, Object.fromEntries(rates)].slice(-span);
  for (const [name, worker] of state.workers) {
    if (status.workers.includes(worker) || status.problem) continue;
    if (!worker.gone) state.workers.set(name, { ...worker, gone: status.at });
    else if (now - Date.parse(worker.gone) > memory) state.workers.delete(name);
  }
  state.status = status;
}

async function poll() {
  clearTimeout(timer);
  if (!state.me) return;
  const { page, args, query } = place(), { hash } = location, own = ++round, its = state, asked = page.asks(args, query, state), refusals = {};
  // The next page's poll begins in a moment, if the address has just changed.
  const isOver = () => own !== round || hash !== location.hash;
  if (page.asksOnce && (shown !== location.hash || again)) {
    Object.assign(asked, page.asksOnce(args, query));
    Object.assign(state, { letters: null, trace: null });
    state.refusals = {};
    again = false;
    // The page still shows another selection, with its buttons.
    if (shown) render(true);
  }
  try {
    if (page === pages.runbook && !state.runbook) state.runbook = await (await fetch("/console/runbook.md")).text();
    const [status, ...answers] = await Promise.all([
      state.seesStatus ? ask("/v1/fleet/status").catch(error => { if (error.status !== 403) throw error; Object.assign(its, { seesStatus: false, status: null }); }) : null,
      ...Object.entries(asked).map(([name, path]) => ask(path).then(answer => {
        // A later round doesn't ask for these again, so they count even if another answer of this round fails.
        if (["letters", "trace"].includes(name) && hash === location.hash) its[name] = answer;
        return answer;
      }, error => {
        if (![400, 403, 404].includes(error.status) && (error.status === 401 || !["letters", "trace"].includes(name))) throw error;
        refusals[name] = error.message;
        if (hash === location.hash) {
          its.refusals[name] = error.message;
          // A look at a queue isn't repeated, because it counts as a return.
          if (name === "trace" && ![400, 403, 404].includes(error.status)) again = true;
        }
      }))]);
    if (isOver()) return;
    if (status) remember(status);
    for (const name in asked) delete state.refusals[name];
    Object.assign(state.refusals, refusals);
    Object.keys(asked).forEach((name, i) => { state[name] = ["campaign", "letters", "message", "trace"].includes(name) ? answers[i] : answers[i]?.[{ audit: "events", unreached: "devices" }[name] || name]; });
    failures = 0;
    render();
  } catch (error) {
    if (isOver()) return;
    if (error.status === 401) return showLogin("Log in again: the session has ended, or the key is revoked.");
    if (++failures > 1 || !shown) tell(at("state"), "bad", "no answer");
  }
  if (!document.hidden) timer = setTimeout(poll, period);
}

function render(isAsking = false) {
  const { page, args, query } = place(), focused = document.activeElement, was = whereabouts(focused), isNew = shown !== location.hash;
  morph(at("nav"), Object.entries(pages).map(([name, one]) => make("a", { href: "#/" + name, "aria-current": one === page && "page" }, one.name)));
  if (isNew || page !== pages.runbook) morph(at("page"), page.show(state, args, query).flat(9).filter(part => part));
  if (isNew) {
    shown = location.hash;
    document.title = `${page.name} · pushfleet console`;
    const title = (page === pages.runbook && at("runbook-" + args[0])) || at("page").querySelector("h1");
    lost = null;
    focusOn(title);
  } else if (!focused.isConnected) lost = was;
  else if (document.activeElement !== focused) focused.focus({ preventScroll: true });
  if (lost && !isAsking) {
    if (document.activeElement === document.body) focusOn(substitute(lost));
    lost = null;
  }
  at("state").href = "#/fleet";
  const found = problems(state);
  tell(at("state"), ...state.status || found.length ? verdict(found) : ["calm", ""]);
}

function focusOn(node) {
  if (/^H\d$/.test(node.nodeName)) node.tabIndex = -1;
  node.focus();
}

function whereabouts(node) {
  if (!at("page").contains(node)) return null;
  const row = node.closest("tr"), heading = node.closest("section")?.querySelector("h2");
  return { post: node.dataset.post, caption: row?.closest("table").caption.textContent, row: row?.rowIndex, section: heading ? [...document.querySelectorAll("#page section")].indexOf(heading.parentNode) : -1 };
}

/// The button of the same operation, else the first link or button from the same row on, else the heading of the section or page.
function substitute({ post, caption, row, section }) {
  const all = selector => [...at("page").querySelectorAll(selector)], table = all("table").find(one => one.caption.textContent === caption);
  return post && all("[data-post]").find(one => one.dataset.post === post) || [...table?.rows || []].slice(row).map(one => one.querySelector("a, button")).find(one => one)
    || all("section")[section]?.querySelector("h2") || at("page").querySelector("h1");
}

// MARK: logins

function showLogin(words) {
  clearTimeout(timer);
  state = nothing();
  ++round;
  shown = "";
  at("dialog").close();
  for (const id of ["nav", "user"]) at(id).hidden = true;
  morph(at("page"), []);
  tell(at("state"), "calm", "");
  at("login").hidden = false;
  at("news").textContent = "";
  say("refusal", words);
  at("secret").focus();
}

function begin(me) {
  Object.assign(state, { me, seesStatus: true });
  at("login").hidden = true;
  for (const id of ["nav", "user"]) at(id).hidden = false;
  at("zone").textContent = `Times are local (${zoneName()}), those of traces UTC.`;
  at("key").textContent = `${me.key} (${me.rights.includes("operate") ? "may operate" : "may only view"})`;
  poll();
}

function zoneName() {
  const minutes = -new Date().getTimezoneOffset(), part = value => String(Math.floor(value)).padStart(2, "0");
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "−" : "+"}${part(Math.abs(minutes) / 60)}:${part(Math.abs(minutes) % 60)}`;
}

function say(id, words) {
  at(id).hidden = !words;
  at(id).textContent = words || "";
}

at("login").addEventListener("submit", async event => {
  event.preventDefault();
  try {
    const me = await ask("/console/login", { key: at("secret").value.trim() });
    at("secret").value = "";
    begin(me);
  } catch (error) {
    say("refusal", error.status === 401 ? "This key is not valid." : error.status === 403 ? "The key has neither the right view nor operate." : error.message);
    at("secret").select();
  }
});
at("logout").addEventListener("click", async () => {
  await ask("/console/logout", {}).catch(() => {});
  showLogin();
});

// MARK: operations

let order = null;
at("page").addEventListener("click", event => {
  const button = event.target.closest("[data-post]");
  if (button) openDialog({ ...button.dataset });
});

/// Opens the dialog of an operation. Without `send`, the operation is posted with the filled-in fields.
function openDialog(one) {
  order = one;
  at("dialog-title").textContent = order.what;
  at("dialog-words").textContent = order.words;
  // A field may have its present value behind its name.
  const [named, present] = order.fields.split("=");
  order.fields = named;
  for (const field of ["rate", "until"]) {
    at(field + "-field").hidden = named !== field && !(field === "rate" && named === "letters");
    at(field).value = field === named && present || "";
  }
  const isDangerous = /\/(drop|discard|forget|cancel|drain)$/.test(order.post);
  at("confirm").className = isDangerous ? "danger" : "primary";
  at("reason").required = isDangerous;
  at("reason-words").textContent = isDangerous ? "Reason" : "Reason (optional)";
  at("rate-words").textContent = order.fields === "letters" ? "Letters per second; empty for no limit" : "Pushes per second of the whole fleet; empty for no limit";
  at("reason").value = "";
  at("confirm").textContent = order.what;
  say("dialog-refusal");
  at("reason-field").hidden = Boolean(order.send);
  at("dialog").showModal();
}

let newsTimer = 0;
function announce(words) {
  at("news").textContent = words;
  clearTimeout(newsTimer);
  newsTimer = setTimeout(() => { at("news").textContent = ""; }, 5000);
}

/// Asks again for the page's data once the operation, or its job, has ended: before that, a look at the job's queue is refused.
async function follow(job, { post, what }) {
  const its = state, { hash } = location;
  announce(`${job ? "Begun" : "Done"}: ${what}`);
  for (let i = 0; job; i++) {
    const one = await ask("/v1/fleet/jobs/" + job).catch(error => ({ state: error.status === 404 ? "stopped" : "running" }));
    if (its !== state) return;
    if (!["waiting", "running"].includes(one.state)) {
      announce(`${one.state === "done" ? "Done" : "Stopped"}: ${what}. Messages: ${number(one.messages)}`);
      break;
    }
    await new Promise(resolve => setTimeout(resolve, i < 10 ? 300 : period));
  }
  again = true;
  poll();
  // A replayed letter may be dead again some seconds later.
  for (const seconds of post.endsWith("/replay") && place().args[0] ? [2, 8] : []) {
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    if (its !== state || hash !== location.hash || state.letters?.letters.length) return;
    again = true;
    poll();
  }
}

for (const choice of document.querySelectorAll("[data-minutes]")) choice.addEventListener("click", () => {
  // The field has whole minutes: a part of one counts as one.
  const minutes = Math.ceil(Date.now() / 60000) + Number(choice.dataset.minutes) - new Date().getTimezoneOffset();
  at("until").value = choice.dataset.minutes && new Date(minutes * 60000).toISOString().slice(0, 16);
});
at("cancel").addEventListener("click", () => at("dialog").close());
at("order").addEventListener("submit", async event => {
  event.preventDefault();
  const body = order.body ? JSON.parse(order.body) : {};
  if (at("reason").value) body.reason = at("reason").value;
  if (at("until").value) body.until = new Date(at("until").value).toISOString();
  if (order.fields === "letters" && at("rate").value) body.rate = Number(at("rate").value);
  if (order.fields === "rate") body.rate = at("rate").value ? Number(at("rate").value) : null;
  at("confirm").disabled = true;
  const its = state;
  try {
    const { job } = await (order.send ? order.send() : ask(order.post, body)) || {};
    at("dialog").close();
    follow(job, order);
  } catch (error) {
    if (error.status === 401 && its === state) showLogin("Log in again: the session has ended, or the key is revoked.");
    else say("dialog-refusal", error.message);
  }
  at("confirm").disabled = false;
});
at("page").addEventListener("submit", event => {
  event.preventDefault();
  const { page } = place();
  if (page.submit) {
    const its = state, { hash } = location, work = page.submit(event, ask, its, (what, words, send) => its === state && hash === location.hash && openDialog({ what, words, send, fields: "", post: "" }));
    render();
    return void work.then(poll, () => its === state && showLogin("Log in again: the session has ended, or the key is revoked."));
  }
  const fields = [...new FormData(event.target)].filter(([, value]) => value);
  const hash = `#/${event.target.dataset.page}?${new URLSearchParams(fields)}`;
  if (hash !== location.hash) return void (location.hash = hash);
  again = true;
  poll();
});

document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  at("main").focus();
});
addEventListener("hashchange", () => { at("dialog").close(); poll(); });
document.addEventListener("visibilitychange", () => { clearTimeout(timer); if (!document.hidden) poll(); });
ask("/console/session").then(me => me.key ? begin(me) : showLogin(), error => showLogin(error.status === 401 ? "" : error.message));
