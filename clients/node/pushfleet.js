"use strict";
/**
 * Sends pushes through pushfleet, and reads results and feedback. Node 18 and amqplib 0.10, or newer.
 *
 *     const push = new Pushfleet("amqp://user:password@broker/", { app: "com.example.app" });
 *     const sent = await push.send({ to: User("anna"), title: "Goal!", body: "1:0", key: "goal-77", lane: "high" });
 *     console.log((await sent.outcome({ timeout: 30 })).success);
 *
 * docs/send/clients.md explains it, docs/send/request.md the fields. Times are in seconds.
 */
const { randomUUID } = require("node:crypto");

const WINDOW = 500; // requests that are published before their confirms are awaited
const DIRECT = "amq.rabbitmq.reply-to";

/** `pending` has the requests that the broker has not confirmed. `sendMany(error.pending)` sends them under the same ids. */
class PushfleetError extends Error {
  /** @param {string} text @param {Sent[]} pending */
  constructor(text, pending = []) {
    super(text);
    this.name = new.target.name;
    this.pending = pending;
  }
}
/** The broker returned or refused a request: the topology isn't declared, or its user lacks a permission. */
class Refused extends PushfleetError {}
/** Nobody knows whether the broker has the pending requests. Send them again under the same ids. */
class Unconfirmed extends PushfleetError {}
/** There is no outcome yet, or its way back is lost. The push may have been delivered, or may still be. */
class OutcomeUnknown extends PushfleetError {}

// Targets

/** Where a push goes. Functions such as User make it; they throw a TypeError, which doesn't contain the value. */
class Target {
  constructor(text, field, isEntry) {
    Object.assign(this, { text, field, isEntry });
  }
}
/** @returns {(value: string) => Target} */
function kind(name, pattern, rule, prefix = "", { field = "to", isEntry = true, write = (value) => value } = {}) {
  return (value) => {
    if (typeof value !== "string" || !pattern.test(value)) throw new TypeError(`${name}: expected ${rule}`);
    return new Target(prefix + write(value), field, isEntry);
  };
}
const APNs = kind("APNs", /^([0-9a-fA-F]{2}){1,100}$/, "a token of 2 to 200 hexadecimal digits in pairs", "apns:");
const FCM = kind("FCM", /^(?!fid:)(?!.*(\.\.|%2[eEfF]))[A-Za-z0-9_:.%-]{1,4096}$/, "a token of up to 4096 of a-z A-Z 0-9 _ : . % -", "fcm:");
const Installation = kind("Installation", /^[cdef][\w-]{21}$/, "the 22 characters of a Firebase installation", "fid:");
const Registration = kind("Registration", /^pf1r~[0-7][0-9a-hjkmnp-tv-z]{25}$/, "an id that the registry issued: pf1r~ and 26 characters");
const Group = kind("Group", /^pf1g~[0-7][0-9a-hjkmnp-tv-z]{25}$/, "a key that the registry issued: pf1g~ and 26 characters");
const User = kind("User", { test: (id) => /^[^\x00-\x1f\x7f-\x9f\p{Surrogate}]+$/u.test(id) && Buffer.byteLength(id) <= 255 },
  "1 to 255 bytes of UTF-8 without control characters", "/users/", { write: (id) => id.replace(/%(?=[0-9a-fA-F]{2})/g, "%25") });
const Topic = kind("Topic", /^[\w\-.~%]{1,899}$/, "1 to 899 of a-z A-Z 0-9 - _ . ~ %", "/topics/");
const Condition = kind("Condition", /./s, "a condition such as 'a' in topics && !('b' in topics)", "", { field: "condition", isEntry: false });
const FCMTopic = kind("FCMTopic", /^[\w\-.~%]{1,900}$/, "1 to 900 of a-z A-Z 0-9 - _ . ~ %", "fcm:/topics/", { isEntry: false });
const Channel = kind("Channel", /^[A-Za-z0-9+/=_-]{1,256}$/, "the id of a broadcast channel of APNs", "apns-channel:", { isEntry: false });
const Everyone = () => new Target("/all", "to", false);
/** A browser's subscription: the object that PushSubscription.toJSON() gives. @returns {Target} */
function WebPush(subscription) {
  if (!subscription?.endpoint || !subscription.keys?.p256dh || !subscription.keys.auth) {
    throw new TypeError("WebPush: expected an object with endpoint, keys.p256dh and keys.auth");
  }
  return new Target("webpush:" + Buffer.from(json("WebPush", subscription)).toString("base64url"), "to", true);
}

// Requests

/**
 * The argument of `send` and `enqueue`, and an entry of `sendMany`. null and undefined mean absent.
 * @typedef {object} Push
 * @property {Target | Target[]} to
 * @property {string} [title]
 * @property {string} [body]
 * @property {Record<string, any>} [notification] further keys beside title and body
 * @property {Record<string, any>} [data]
 * @property {string} [key] the collapse key
 * @property {number} [ttl] seconds
 * @property {"high" | "normal"} [lane] the queue: high for pushes that a user waits for; default: normal
 * @property {"high" | "normal"} [priority] for the device
 * @property {boolean} [content_available]
 * @property {boolean} [mutable_content]
 * @property {boolean} [delay_while_idle]
 * @property {boolean} [dry_run]
 * @property {string} [restricted_package_name]
 * @property {Record<string, any>} [apns]
 * @property {Record<string, any>} [android]
 * @property {Record<string, any>} [android_v2]
 * @property {Record<string, any>} [webpush]
 * @property {string} [id] the message id; default: a new UUID
 * @property {string | number} [sender]
 * @property {"production" | "sandbox"} [environment]
 * @property {"retry" | "drop"} [unknown] after a push without an answer
 */
/** @typedef {Record<string, any>} Result docs/schema/result.schema.json or docs/schema/fan-out-result.schema.json */
/** @typedef {Record<string, any>} Feedback docs/schema/feedback.schema.json */
/** @typedef {{ query(sql: string, values?: any[]): Promise<{ rows: any[] }>, end?(): any }} Database for example a client of pg */

const text = "a string", flag = "a boolean", object = "an object", list = "a list of strings", count = "a whole number from 0";
const lanes = ["high", "normal"];
const PUSH = {
  to: "", title: text, body: text, notification: object, data: object, key: text, ttl: count, lane: lanes, priority: lanes,
  content_available: flag, mutable_content: flag, delay_while_idle: flag, dry_run: flag, restricted_package_name: text, apns: object,
  android: object, android_v2: object, webpush: object, id: text, sender: "a string or a whole number",
  environment: ["production", "sandbox"], unknown: ["retry", "drop"],
};
const NOTIFICATION = {
  title: text, body: text, subtitle: text, title_loc_key: text, body_loc_key: text, subtitle_loc_key: text, title_loc_args: list,
  body_loc_args: list, subtitle_loc_args: list, badge: "auto, or a whole number from 0", sound: "a string or an object",
  click_action: text, icon: text, color: text, tag: text, android_channel_id: text, image: text, ticker: text, sticky: flag,
  local_only: flag, default_sound: flag, event_time: text, notification_priority: text, notification_count: count, visibility: text,
};
const isText = (value) => typeof value === "string";
const isObject = (value) => Object.prototype.toString.call(value) === "[object Object]"; // so no Map, no list
const isJSON = (value) => value === null || typeof value === "boolean" || Number.isFinite(value) || Array.isArray(value) || isObject(value)
  || (isText(value) && !/\p{Surrogate}/u.test(value));
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const CHECKS = {
  [text]: isText, [flag]: (value) => typeof value === "boolean", [object]: isObject, [count]: isCount,
  [list]: (value) => Array.isArray(value) && value.every(isText),
  [NOTIFICATION.badge]: (value) => value === "auto" || isCount(value), [NOTIFICATION.sound]: (value) => isText(value) || isObject(value),
  [PUSH.sender]: (value) => isText(value) || Number.isSafeInteger(value), "": () => true,
};
const FIELDS = { key: "collapse_key", ttl: "time_to_live" };
const HEADERS = { sender: "x-push-sender", environment: "x-push-environment", unknown: "x-push-unknown" };
const UNSEEN = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** Throws a TypeError that names the argument. */
function check(place, given, kinds) {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(kinds, name)) throw new TypeError(`${place}${name}: unknown name`);
    const expected = kinds[name];
    const isRight = Array.isArray(expected) ? expected.includes(value) : CHECKS[expected](value);
    if (!isRight) throw new TypeError(`${place}${name}: expected ${Array.isArray(expected) ? expected.join(" or ") : expected}`);
  }
}

/** Like JSON.stringify, but refuses values that it would change (a Date, for example) or leave out, except undefined in an object. */
function json(name, value) {
  try {
    return JSON.stringify(value, function (key, each) {
      // `each` differs from this[key] if a toJSON made it.
      if (!isJSON(key) || each !== this[key] || !(isJSON(each) || (each === undefined && !Array.isArray(this)))) {
        throw new TypeError("expected only values that JSON has, and well-formed Unicode");
      }
      return each;
    });
  } catch (error) {
    throw new TypeError(`${name}: ${error.message}`);
  }
}

/** A request with its id. The same id and body make a copy recognisable. */
class Sent {
  constructor(id, app, lane, timestamp, headers, body) {
    Object.assign(this, { id, app, lane, timestamp, headers, body });
    // The broker's word: confirmed, nacked, returned.
    for (const [name, value] of Object.entries({ _fate: "", _answer: null, _client: null, _link: null, _watchers: new Set() })) {
      Object.defineProperty(this, name, { value, writable: true });
    }
  }

  get request() {
    return JSON.parse(this.body);
  }

  /**
   * Waits for the result. Throws OutcomeUnknown if none has come after `timeout` seconds, or none can come.
   * @returns {Promise<Result>}
   */
  async outcome({ timeout = 30 } = {}) {
    if (!this._client) throw new PushfleetError("a request of an outbox has no way back: read its result from results()");
    return this._client._outcome(this, timeout);
  }
}

function target(to) {
  if (to instanceof Target) return { [to.field]: to.text };
  if (!Array.isArray(to) || !to.every((entry) => entry instanceof Target)) {
    throw new TypeError('to: expected a target such as User("anna"), or a list of targets');
  }
  if (to.length < 1 || to.length > 1000 || !to.every((entry) => entry.isEntry)) {
    throw new TypeError("to: a list has 1 to 1000 targets, each of them a device, user, group or topic");
  }
  return { registration_ids: to.map((entry) => entry.text) };
}

/** @param {string} app @param {Push} push @returns {Sent} */
function make(app, push) {
  if (!isObject(push)) throw new TypeError("push: expected an object");
  const given = Object.fromEntries(Object.entries(push).filter(([, value]) => value !== null && value !== undefined));
  check("", given, PUSH);
  check("notification.", given.notification ?? {}, NOTIFICATION);
  for (const [name, value] of Object.entries(given)) if (name !== "to") json(name, value);
  for (const [name, limit] of [["key", 1024], ["id", 255]]) {
    const value = given[name] ?? "x";
    if (value === "" || Buffer.byteLength(value) > limit || UNSEEN.test(value)) {
      throw new TypeError(`${name}: expected 1 to ${limit} bytes of UTF-8 without control characters`);
    }
  }
  if (given.ttl > 2_419_200) throw new TypeError("ttl: expected 0 to 2419200 seconds");
  const reserved = Object.keys(given.data ?? {}).find((name) => /^(from$|message_type$|google|gcm)/.test(name));
  if (reserved !== undefined) throw new TypeError(`data: the name ${JSON.stringify(reserved)} is reserved`);
  const { to, title, body, notification, lane = "normal", id = randomUUID(), ...others } = given;
  for (const name of ["title", "body"]) {
    if (name in given && notification && name in notification) throw new TypeError(`${name}: given twice, also as notification.${name}`);
  }
  const shown = { ...notification, ...(title !== undefined && { title }), ...(body !== undefined && { body }) };
  const request = { ...target(to), ...(Object.keys(shown).length > 0 && { notification: shown }) };
  const headers = {};
  for (const [name, value] of Object.entries(others)) {
    if (name in HEADERS) headers[HEADERS[name]] = value;
    else request[FIELDS[name] ?? name] = value;
  }
  return new Sent(id, app, lane, now(), headers, json("to", request));
}

// The connection

const now = () => Math.floor(Date.now() / 1000);
const until = (deadline) => (deadline - Date.now()) / 1000;
const wake = (watchers) => [...watchers].forEach((end) => end(true));
/** False if the seconds passed before `wake` was called for one of the sets. Without seconds it waits forever. */
function woken(sets, seconds) {
  return new Promise((resolve) => {
    const timer = seconds === undefined ? undefined : setTimeout(() => end(false), seconds * 1000);
    const end = (isWoken) => {
      clearTimeout(timer);
      sets.forEach((set) => set.delete(end));
      resolve(isWoken);
    };
    sets.forEach((set) => set.add(end));
  });
}
/** Seconds between attempts: from a tenth of a second, doubled up to 5 s, each up to half shorter by chance. */
function* pauses() {
  for (let pause = 0.1; ; pause = Math.min(pause * 2, 5)) yield pause * (0.5 + Math.random() / 2);
}
const isRefusal = (error) => [403, 404, 406].includes(error?.code);

/** One connection with one channel that confirms. `error` is set when either is lost. */
class Link {
  error = null;
  watchers = new Set();
  unconfirmed = new Map();

  /** Waits for an answer of the broker, before the link is shared. */
  async answered(answer, seconds) {
    answer.catch((error) => this.lose(error)).then(() => wake(this.watchers));
    if (!this.error && !(await woken([this.watchers], seconds))) this.lose(new Error("the broker does not answer"));
    if (!this.error) return;
    this.close();
    throw this.error;
  }

  async start(connect, owns) {
    const connection = await connect();
    this.connection = owns ? connection : null;
    const lose = (error) => this.lose(error ?? new Error("the connection is closed"));
    connection.on("error", lose);
    connection.on("close", lose);
    if (this.error) return this.close(); // too late
    const channel = await connection.createConfirmChannel();
    channel.on("error", lose);
    channel.on("close", lose);
    channel.on("return", (message) => {
      const sent = this.unconfirmed.get(message.properties.messageId);
      if (sent) sent._fate = "returned";
    });
    this.channel = channel;
    if (this.error) return this.close(); // too late
  }

  lose(error) {
    this.error ??= error;
    wake(this.watchers);
  }

  /** Waits for at most 1 s until the broker has everything that was written. */
  async close() {
    const closed = new Set();
    this.lose(new Error("closed"));
    (async () => (this.connection ?? this.channel)?.close())().catch(() => {}).then(() => wake(closed));
    await woken([closed], 1);
  }
}

class Pushfleet {
  /**
   * @param {any} amqp the broker's URL, a function that opens a connection of amqplib, or a connection. With the last, a lost
   *   connection isn't opened again.
   * @param {object} options
   * @param {string} options.app the application's id in the fleet's configuration
   * @param {number} [options.timeout] the seconds that a request may take until its confirm, with all attempts; then Unconfirmed
   *   is thrown
   * @param {string | null} [options.replies] where results come back. RabbitMQ's direct reply-to loses them with the connection;
   *   a durable queue, which only this object reads and which the setting `replyTo` allows, does not. null: `outcome` isn't used
   * @param {string} [options.prefix]
   * @param {string} [options.user] the broker's user, for applications with `producers`; default: the one in the URL
   */
  constructor(amqp, { app, timeout = 30, replies = DIRECT, prefix = "push", user } = {}) {
    if (!isText(app) || app === "") throw new TypeError("app: expected the application's id");
    if (isText(amqp) && !/^amqps?:\/\//.test(amqp)) throw new TypeError("amqp: expected a URL that begins with amqp:// or amqps://");
    if (typeof amqp === "string") user ??= decodeURIComponent(new URL(amqp).username) || "guest";
    const dial = () => require("amqplib").connect(amqp, { timeout: timeout * 1000 });
    this._dial = typeof amqp === "string" ? dial : typeof amqp === "function" ? amqp : () => amqp;
    this._owns = typeof amqp !== "object";
    Object.assign(this, { app, _timeout: timeout, _replies: replies, _prefix: prefix, _user: user, _link: null, _opening: null });
    Object.assign(this, { _isClosed: false, _links: [], _sleepers: new Set() });
    // Requests whose result nobody holds are forgotten.
    this._waiting = new Map();
    this._forgotten = new FinalizationRegistry((id) => this._waiting.delete(id));
  }

  /**
   * Ends all calls in progress: sends with Unconfirmed, outcomes with OutcomeUnknown, and the loops of `feedback`, `results` and `relay`.
   * Nothing is sent or read afterwards.
   */
  async close() {
    this._isClosed = true;
    wake(this._sleepers);
    await Promise.all(this._links.map((link) => link.close()));
  }

  async _open(seconds) {
    if (this._isClosed) throw new Error("the client is closed");
    const link = new Link();
    this._links = [...this._links.filter((each) => !each.error), link];
    await link.answered(link.start(this._dial, this._owns), seconds);
    return link;
  }

  async _sleep(seconds) {
    if (!this._isClosed) await woken([this._sleepers], seconds);
  }

  // Sending

  /** Publishes a request and waits for the broker's confirm. Throws Refused, Unconfirmed; TypeError for arguments.
   * @param {Push} push @returns {Promise<Sent>} */
  async send(push) {
    return (await this.sendMany([push]))[0];
  }

  /**
   * As `send`, with many requests on their way at once. No request is sent if the arguments of one are wrong. After an error,
   * `error.pending` has the requests that aren't confirmed; all others are.
   * @param {Iterable<Push | Sent>} pushes @returns {Promise<Sent[]>}
   */
  async sendMany(pushes) {
    const every = Array.from(pushes, (push) => (push instanceof Sent ? push : Object.assign(make(this.app, push), { _client: this })));
    for (let start = 0; start < every.length; start += WINDOW) {
      await this._deliver(every.slice(start, start + WINDOW), every.slice(start + WINDOW));
    }
    return every;
  }

  async _deliver(waiting, rest) {
    const deadline = Date.now() + this._timeout * 1000;
    for (const sent of waiting) sent._fate = ""; // of an earlier call
    for (const pause of pauses()) {
      const problem = await this._attempt(waiting, deadline);
      waiting = waiting.filter((sent) => sent._fate !== "confirmed");
      if (waiting.length === 0) return;
      const pending = [...waiting, ...rest];
      if (isRefusal(problem)) throw new Refused(`the broker refused: ${problem.message}`, pending);
      if (waiting.some((sent) => sent._fate === "returned")) {
        throw new Refused("no queue accepts the request: run pushfleet topology", pending);
      }
      if (this._isClosed) throw new Unconfirmed("not confirmed: the client is closed", pending);
      if (Date.now() + pause * 1000 > deadline) throw new Unconfirmed(`not confirmed within ${this._timeout} s: ${problem.message}`, pending);
      await this._sleep(pause);
    }
  }

  /** Publishes once and waits for the confirms; each request then has its fate, if it is known. Returns the problem. */
  async _attempt(waiting, deadline) {
    const done = new Set(), silence = new Error("the broker does not confirm");
    let link, open = waiting.length, isShort, isOver = false;
    try {
      link = await this._connect(until(deadline));
      for (const sent of waiting) {
        sent._fate = "";
        link.unconfirmed.set(sent.id, sent);
        link.channel.publish(`${this._prefix}.send`, sent.lane, Buffer.from(sent.body), this._properties(sent, link), (error) => {
          if (isOver) return;
          sent._fate ||= error ? "nacked" : "confirmed";
          if (--open === 0) wake(done);
        });
      }
      const left = until(deadline);
      isShort = left < this._timeout / 3;
      if (!link.error) await woken([done, link.watchers], isShort ? left : this._timeout / 3);
    } catch (error) {
      link?.lose(error);
      if (!link) return error;
    }
    isOver = true;
    for (const sent of waiting) link.unconfirmed.delete(sent.id);
    // Others use the link too, so a short attempt doesn't give it up.
    if (open > 0 && !isShort) link.lose(silence);
    if (link.error) link.close();
    return link.error ?? (open > 0 ? silence : new Error("the broker refused them for now, a queue may be full"));
  }

  _properties(sent, link) {
    let reply = {};
    if (this._replies && sent._client === this) {
      this._waiting.set(sent.id, new WeakRef(sent));
      this._forgotten.register(sent, sent.id);
      sent._link = link;
      reply = { replyTo: this._replies, correlationId: sent.id };
    }
    return {
      contentType: "application/json", persistent: true, mandatory: true, messageId: sent.id, appId: sent.app, timestamp: sent.timestamp,
      headers: sent.headers, ...(this._user && { userId: this._user }), ...reply,
    };
  }

  /** The present connection, or a new one. Sends at the same time share it. */
  async _connect(seconds) {
    if (this._link && !this._link.error) return this._link;
    const opening = (this._opening ??= this._openWithReplies().finally(() => (this._opening = null))), ready = new Set();
    opening.catch(() => {}).then(() => wake(ready));
    if (!(await woken([ready], seconds))) throw new Error("the broker does not answer");
    return opening;
  }

  async _openWithReplies() {
    this._link?.close();
    const link = await this._open(this._timeout), noAck = this._replies === DIRECT;
    const take = (message) => {
      if (!message) return link.lose(new Error(`${this._replies} was deleted`));
      if (!noAck) link.channel.ack(message);
      const sent = this._waiting.get(message.properties.correlationId)?.deref();
      this._waiting.delete(message.properties.correlationId);
      if (!sent) return;
      try {
        sent._answer = decoded(message.content, this._replies);
      } catch {
        return; // Its outcome stays unknown.
      }
      wake(sent._watchers);
    };
    if (this._replies) await link.answered(link.channel.consume(this._replies, take, { noAck }), this._timeout);
    return (this._link = link);
  }

  async _outcome(sent, timeout) {
    if (!this._replies) throw new PushfleetError("replies: null was given, so no outcome comes back");
    const deadline = Date.now() + timeout * 1000;
    const attempts = pauses();
    while (!sent._answer) {
      const left = until(deadline);
      if (left <= 0) throw new OutcomeUnknown(`no outcome of ${sent.id} after ${timeout} s; it may still come`);
      if (this._isClosed || (this._replies === DIRECT && sent._link?.error !== null)) {
        throw new OutcomeUnknown(`the connection to which the outcome of ${sent.id} would come is lost`);
      }
      try {
        const link = this._replies === DIRECT ? sent._link : await this._connect(left);
        if (!sent._answer && !link.error) await woken([sent._watchers, link.watchers], until(deadline));
      } catch (error) {
        if (isRefusal(error)) throw new Refused(`the broker refused: ${error.message}`);
        await this._sleep(Math.min(attempts.next().value, until(deadline)));
      }
    }
    return sent._answer;
  }

  // Reading

  /** Results of `push.results`, or of your queue that is bound to push.events. As `feedback`.
   * @param {{ queue?: string, idle?: number }} [options] @returns {AsyncGenerator<Result>} */
  results({ queue = `${this._prefix}.results`, idle } = {}) {
    return this._events(queue, idle);
  }

  /**
   * Events about tokens of all applications. An event is acknowledged when the loop asks for the next one. So an event may come
   * twice, and one whose loop body threw or left the loop comes again. The loop ends after `idle` seconds without an event;
   * without `idle` it doesn't end. Throws Refused, and PushfleetError if the broker can't be reached.
   * @param {{ queue?: string, idle?: number }} [options] @returns {AsyncGenerator<Feedback>}
   */
  feedback({ queue = `${this._prefix}.feedback`, idle } = {}) {
    return this._events(queue, idle);
  }

  async *_events(queue, idle) {
    let deadline = Date.now() + this._timeout * 1000, attempts = pauses();
    for (;;) {
      let link, problem;
      try {
        link = await this._open(until(deadline));
        const events = [], arrived = new Set();
        await link.answered(link.channel.prefetch(100), until(deadline));
        const take = (message) => {
          if (message) events.push(message);
          else link.lose(new Error(`${queue} was deleted`));
          wake(arrived);
        };
        await link.answered(link.channel.consume(queue, take), until(deadline));
        while (!link.error) {
          if (events.length === 0 && !(await woken([arrived, link.watchers], idle))) return;
          const message = events.shift();
          if (!message) continue;
          yield decoded(message.content, queue);
          if (!link.error) link.channel.ack(message);
        }
        [problem, deadline, attempts] = [link.error, Date.now() + this._timeout * 1000, pauses()];
      } catch (error) {
        if (error instanceof PushfleetError || (link && !link.error)) throw error;
        problem = link?.error ?? error;
      } finally {
        await link?.close();
      }
      if (this._isClosed) return;
      if (isRefusal(problem)) throw new Refused(`the broker refused: ${problem.message}`);
      if (Date.now() > deadline) throw new PushfleetError(`the broker can't be reached: ${problem.message}`);
      await this._sleep(attempts.next().value);
    }
  }

  // The outbox

  /** Stores a request in the caller's transaction, in the table of `createOutbox`; a relay publishes it. Returns its id.
   * @param {Database} tx @param {Push} push @returns {Promise<string>} */
  async enqueue(tx, push) {
    const sent = make(this.app, push);
    await tx.query("INSERT INTO pushfleet_outbox (id, app, lane, sent_at, headers, body) VALUES ($1, $2, $3, $4, $5, $6)",
      [sent.id, sent.app, sent.lane, sent.timestamp, JSON.stringify(sent.headers), sent.body]);
    return sent.id;
  }

  /**
   * Publishes the outbox in its order, and deletes what the broker has confirmed. Looks again every `poll` seconds and doesn't end;
   * with `poll: null` it ends when the outbox is empty, and returns the number of requests. A relay that is lost between confirm
   * and deletion leaves rows that are published again, under the same ids. Relays beside each other share the rows.
   * @param {() => Promise<Database>} connect opens a database connection @param {{ poll?: number | null }} [options]
   * @returns {Promise<number>}
   */
  async relay(connect, { poll = 1 } = {}) {
    const database = await connect();
    try {
      for (let count = 0, moved; ; count += moved) {
        moved = await this._relay(database).catch((error) => {
          if (poll === null || !(error instanceof Unconfirmed)) throw error;
          return 0;
        });
        if (moved === 0 && (poll === null || this._isClosed)) return count;
        if (moved === 0) await this._sleep(poll);
      }
    } finally {
      await database.end?.();
    }
  }

  async _relay(database) {
    let problem = null;
    await database.query("BEGIN");
    try {
      const { rows } = await database.query("SELECT seq, id, app, lane, sent_at, headers, body FROM pushfleet_outbox"
        + ` ORDER BY seq LIMIT ${WINDOW} FOR UPDATE SKIP LOCKED`);
      const requests = rows.map((row) => new Sent(row.id, row.app, row.lane, Number(row.sent_at), JSON.parse(row.headers), row.body));
      await this.sendMany(requests).catch((error) => {
        if (!(error instanceof PushfleetError)) throw error;
        problem = error;
      });
      const moved = rows.filter((_, index) => !problem?.pending.includes(requests[index]));
      for (const row of moved) await database.query("DELETE FROM pushfleet_outbox WHERE seq = $1", [row.seq]);
      await database.query("COMMIT");
      if (problem) throw problem;
      return moved.length;
    } catch (error) {
      if (error !== problem) await database.query("ROLLBACK").catch(() => {});
      throw error;
    }
  }
}

/** Creates the table of the outbox in PostgreSQL, unless it exists. @param {Database} tx */
async function createOutbox(tx) {
  await tx.query("CREATE TABLE IF NOT EXISTS pushfleet_outbox (seq BIGSERIAL PRIMARY KEY, id TEXT NOT NULL UNIQUE, app TEXT NOT NULL,"
    + " lane TEXT NOT NULL, sent_at BIGINT NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL)");
}

function decoded(content, queue) {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new PushfleetError(`${queue}: a message isn't JSON: ${error.message}`);
  }
}

/**
 * For unit tests: checks arguments and records requests, without a broker.
 *
 * sent: the requests. script: what the next requests end with, one entry each: a result; an OutcomeUnknown, which `outcome` throws;
 * another PushfleetError, which `send` throws. Without an entry, a request succeeds. resultEvents and feedbackEvents: what the
 * iterators give; an event stays until the loop asks for the next one.
 */
class FakePushfleet extends Pushfleet {
  constructor({ app }) {
    super(null, { app });
    Object.assign(this, { sent: [], script: [], resultEvents: [], feedbackEvents: [], _outcomes: new Map() });
  }

  async _deliver(waiting, rest) {
    for (const [index, sent] of waiting.entries()) {
      const entry = this.script.shift() ?? this._success(sent);
      if (entry instanceof PushfleetError && !(entry instanceof OutcomeUnknown)) {
        entry.pending = [...waiting.slice(index), ...rest];
        throw entry;
      }
      this.sent.push(sent);
      this._outcomes.set(sent.id, entry);
    }
  }

  _success(sent) {
    const results = (sent.request.registration_ids ?? [""]).map((_, index) => ({ message_id: `fake-${index}` }));
    return { message_id: sent.id, app: sent.app, success: results.length, failure: 0, canonical_ids: 0, results };
  }

  async _outcome(sent) {
    const entry = this._outcomes.get(sent.id);
    if (entry instanceof PushfleetError) throw entry;
    return entry;
  }

  async *_events(queue) {
    const events = queue.endsWith(".results") ? this.resultEvents : this.feedbackEvents;
    for (; events.length > 0; events.shift()) yield events[0];
  }
}

module.exports = {
  Pushfleet, FakePushfleet, createOutbox, PushfleetError, Refused, Unconfirmed, OutcomeUnknown, APNs, FCM, WebPush, Installation,
  Registration, User, Group, Topic, Condition, FCMTopic, Channel, Everyone,
};
