"use strict";
// Tests of the client with a real broker, database and worker, which dev/test-clients starts.
const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { randomUUID } = require("node:crypto");
const { once } = require("node:events");
const fs = require("node:fs");
const net = require("node:net");
const { after, describe, test } = require("node:test");
const { setTimeout: sleep } = require("node:timers/promises");
const pushfleet = require("./pushfleet.js");
const { connectDatabase } = require("./test-database.js");

const {
  APNs, Channel, Condition, Everyone, FCM, FCMTopic, FakePushfleet, Group, Installation, OutcomeUnknown, Pushfleet, PushfleetError, Refused,
  Registration, Topic, Unconfirmed, User, WebPush, createOutbox,
} = pushfleet;
const amqp = require("amqplib");
const { AMQP_URL, JOURNALS, METRICS, RESTART } = process.env;
const APP = "com.example.app";
const PHONE = APNs("ab".repeat(32)), DEAD = APNs("de".repeat(32));

const clients = [];
after(async () => {
  for (const client of clients) await client.close();
});
function producer(options = {}, url = AMQP_URL) {
  const client = new Pushfleet(url, { app: APP, ...options });
  clients.push(client);
  return client;
}
async function channel() {
  const connection = await amqp.connect(AMQP_URL);
  clients.push(connection);
  return connection.createConfirmChannel();
}
/** A URL of the broker, and a state: while `passes` is false, the broker seems silent. */
async function proxy() {
  const state = { passes: true }, { hostname, port } = new URL(AMQP_URL), sockets = [];
  const server = net.createServer((client) => {
    const broker = net.connect(port, hostname);
    for (const [source, goal] of [[client, broker], [broker, client]]) {
      sockets.push(source.on("data", (bytes) => state.passes && goal.write(bytes)).on("error", () => {}).on("close", () => goal.destroy()));
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  clients.push({ close: () => (server.close(), sockets.forEach((socket) => socket.destroy())) });
  return { state, url: AMQP_URL.replace(/\d+\/$/, `${server.address().port}/`) };
}
const journal = (platform, word) => fs.readFileSync(`${JOURNALS}/${platform}.ndjson`, "utf8").split("\n").filter((line) => line.includes(word));
async function suppressed() {
  // The worker closes connections that are idle for two seconds, and fetch doesn't repeat a request on one of them.
  const text = await (await fetch(METRICS, { headers: { Connection: "close" } })).text();
  return Number(text.match(/^pushfleet_duplicates_suppressed_total.* (\S+)$/m)[1]);
}
async function awaitResults(push, ids) {
  const missing = new Set(ids);
  for await (const result of push.results({ idle: 10 })) {
    missing.delete(result.message_id);
    if (missing.size === 0) return;
  }
  assert.fail(`no result of ${[...missing].slice(0, 3)}`);
}
async function collect(events, id) {
  const found = [];
  for await (const event of events) if (event.message_id === id) found.push(event);
  return found;
}

describe("with a fleet that delivers", () => {
  test("a push to each kind of device reaches it", async () => {
    for (const [to, platform] of [[PHONE, "apns"], [User("anna"), "apns"], [FCM("phone:1"), "fcm"]]) {
      const word = randomUUID();
      const sent = await producer().send({ to, title: "Goal!", body: word, key: "goal-77", lane: "high", ttl: 600 });
      assert.equal((await sent.outcome({ timeout: 30 })).success, 1);
      assert.equal(journal(platform, word).length, 1);
    }
  });

  test("a list has a result for each target, in order", async () => {
    const { results } = await (await producer().send({ to: [PHONE, DEAD], title: "x" })).outcome();
    assert.ok(results[0].message_id);
    assert.equal(results[1].error, "NotRegistered");
  });

  test("a refused request has an outcome with the reason", async () => {
    const push = producer();
    assert.equal((await (await push.send({ to: PHONE, title: "x".repeat(3000) })).outcome()).results[0].error, "MessageTooBig");
    assert.ok((await (await push.send({ to: PHONE, title: "x", sender: "nobody" })).outcome()).results[0].reason);
  });

  test("sends at the same time share a connection and get their own outcomes", async () => {
    const push = producer();
    const sent = await Promise.all(Array.from({ length: 50 }, () => push.send({ to: PHONE, title: "x" })));
    const outcomes = await Promise.all(sent.map((each) => each.outcome()));
    assert.deepEqual(outcomes.map((outcome) => outcome.message_id), sent.map((each) => each.id));
  });

  test("an outcome in a queue of one's own survives the connection", async () => {
    const replies = `replies.${randomUUID()}`;
    await (await channel()).assertQueue(replies);
    const push = producer({ replies });
    const sent = await push.send({ to: PHONE, title: "x" });
    await push._link.close();
    assert.equal((await sent.outcome()).success, 1);
  });

  test("feedback names a dead token, and stays until the body has succeeded", async () => {
    const push = producer();
    const sent = await push.send({ to: DEAD, title: "x" });
    await assert.rejects(async () => {
      for await (const event of push.feedback({ idle: 10 })) if (event.message_id === sent.id) throw new RangeError("not yet handled");
    }, RangeError);
    const again = await collect(push.feedback({ idle: 1 }), sent.id);
    assert.deepEqual(again.map((event) => [event.event, `apns:${event.token}`]), [["NotRegistered", DEAD.text]]);
    assert.deepEqual(await collect(push.feedback({ idle: 0.3 }), sent.id), []);
  });

  test("nothing is lost when the broker restarts in the middle of sendMany", async () => {
    const word = randomUUID(), ids = [];
    let connections = 0;
    const push = new Pushfleet(() => (connections++, amqp.connect(AMQP_URL)), { app: APP, replies: null });
    clients.push(push);
    const restart = spawn(RESTART, { stdio: "ignore" });
    const exit = once(restart, "exit");
    while (restart.exitCode === null || ids.length === 0) {
      const pushes = Array.from({ length: 1000 }, (_, n) => ({ to: PHONE, title: "x", data: { n: `${word}-${ids.length + n}.` } }));
      ids.push(...(await push.sendMany(pushes)).map((sent) => sent.id));
    }
    assert.deepEqual(await exit, [0, null]);
    assert.ok(connections > 1, "the connection was not lost");
    assert.equal(new Set(ids).size, ids.length);
    await awaitResults(push, ids);
    const pushed = new Set(journal("apns", word).map((line) => JSON.parse(line).payload.n));
    assert.deepEqual([...pushed].sort(), ids.map((_, n) => `${word}-${n}.`).sort());
  });
});

describe("with a broker that doesn't accept requests", () => {
  test("a returned request is refused", async () => {
    const prefix = `other-${randomUUID()}`;
    await (await channel()).assertExchange(`${prefix}.send`, "direct");
    await assert.rejects(producer({ prefix }).send({ to: PHONE, title: "x" }), { name: "Refused", message: /no queue accepts/ });
  });

  test("what the broker said about an earlier copy does not count", async () => {
    const prefix = `other-${randomUUID()}`, setup = await channel(), push = producer({ prefix });
    await setup.assertExchange(`${prefix}.send`, "direct");
    const { pending } = await push.send({ to: PHONE, title: "x" }).catch((each) => each);
    const { queue } = await setup.assertQueue("", { exclusive: true });
    await setup.bindQueue(queue, `${prefix}.send`, "normal");
    push._connect = async () => {
      delete push._connect;
      throw new Error("lost");
    };
    const sent = await push.sendMany(pending);
    await push.close();
    const error = await push.sendMany(sent).catch((each) => each);
    assert.ok(error instanceof Unconfirmed, String(error));
    assert.deepEqual(error.pending, sent);
  });

  test("a last attempt that is too short leaves the connection to earlier requests", async () => {
    const prefix = `other-${randomUUID()}`, setup = await channel(), push = producer({ prefix, timeout: 1 });
    await setup.assertExchange(`${prefix}.send`, "direct");
    const { queue } = await setup.assertQueue("", { exclusive: true });
    await setup.bindQueue(queue, `${prefix}.send`, "normal");
    const first = await push.send({ to: PHONE, title: "x" }), link = push._link;
    push._connect = async () => (await sleep(750), link);
    link.channel.publish = () => true; // The broker gets nothing.
    await assert.rejects(push.send({ to: PHONE, title: "y" }), { name: "Unconfirmed", message: /does not confirm/ });
    await assert.rejects(first.outcome({ timeout: 0.1 }), { name: "OutcomeUnknown", message: /may still come/ });
  });

  test("a missing exchange or queue is refused", async () => {
    const push = producer({ prefix: `other-${randomUUID()}` });
    await assert.rejects(push.send({ to: PHONE, title: "x" }), { name: "Refused", message: /no exchange/ });
    await assert.rejects(push.results().next(), { name: "Refused", message: /no queue/ });
  });

  test("an outcome that has not come, or can't come, is unknown", async () => {
    const prefix = `other-${randomUUID()}`, setup = await channel(), push = producer({ prefix });
    await setup.assertExchange(`${prefix}.send`, "direct");
    const { queue } = await setup.assertQueue("", { exclusive: true });
    await setup.bindQueue(queue, `${prefix}.send`, "normal");
    const sent = await push.send({ to: PHONE, title: "x" });
    await assert.rejects(sent.outcome({ timeout: 0.1 }), { name: "OutcomeUnknown", message: /may still come/ });
    await push._link.close();
    await assert.rejects(sent.outcome(), { name: "OutcomeUnknown", message: /connection/ });
  });

  test("a request that a full queue refuses is sent again under its id", async () => {
    const prefix = `other-${randomUUID()}`, setup = await channel();
    await setup.assertExchange(`${prefix}.send`, "direct");
    const { queue } = await setup.assertQueue("", { exclusive: true, arguments: { "x-max-length": 1, "x-overflow": "reject-publish" } });
    await setup.bindQueue(queue, `${prefix}.send`, "normal");
    const first = await producer({ prefix }).send({ to: PHONE, title: "x" });
    const pushes = [{ to: PHONE, title: "y" }, { to: PHONE, title: "z" }];
    const error = await producer({ prefix, timeout: 1 }).sendMany(pushes).catch((each) => each);
    assert.ok(error instanceof Unconfirmed && /queue may be full/.test(error.message), String(error));
    assert.deepEqual(error.pending.map((sent) => sent.request.notification.title), ["y", "z"]);
    const accepted = producer({ prefix }).sendMany([error.pending[0]]);
    const ids = [];
    await new Promise((resolve) => setup.consume(queue, (message) => {
      if (ids.push(message.properties.messageId) === 2) resolve();
    }, { noAck: true }));
    assert.deepEqual(ids, [first.id, error.pending[0].id]);
    assert.deepEqual(await accepted, [error.pending[0]]);
  });

  test("without a broker the request stays unconfirmed", async () => {
    const push = producer({ timeout: 0.3 }, "amqp://127.0.0.1:1/");
    const error = await push.send({ to: PHONE, title: "x", id: "mine" }).catch((each) => each);
    assert.ok(error instanceof Unconfirmed, String(error));
    assert.deepEqual(error.pending.map((sent) => sent.id), ["mine"]);
    await assert.rejects(error.pending[0].outcome(), { name: "OutcomeUnknown", message: /connection/ });
    await assert.rejects(push.feedback().next(), { name: "PushfleetError", message: /can't be reached/ });
  });

  test("when the broker falls silent, the request stays unconfirmed within the timeout", async () => {
    const { state, url } = await proxy(), push = producer({ timeout: 3 }, url);
    await push.send({ to: PHONE, title: "x" });
    state.passes = false;
    const begin = Date.now();
    await assert.rejects(push.send({ to: PHONE, title: "x" }), Unconfirmed);
    assert.ok(Date.now() - begin < 4000, `${Date.now() - begin} ms`);
  });

  test("a loop reads on if its connection was lost during a slow body", async () => {
    const setup = await channel(), push = producer({ timeout: 0.3 }), seen = [];
    const { queue } = await setup.assertQueue("", { arguments: { "x-expires": 60000 } });
    setup.publish("", queue, Buffer.from('{"n":1}'), {});
    for await (const { n } of push.feedback({ queue, idle: 1 })) {
      if (seen.push(n) > 1) continue;
      await new Promise((resolve) => setTimeout(resolve, 500));
      push._links[0].lose(new Error("lost"));
    }
    assert.deepEqual(seen, [1, 1]);
  });

  test("close ends everything that is under way, and a program with it", async () => {
    const replies = `replies.${randomUUID()}`, prefix = `other-${randomUUID()}`, setup = await channel();
    await setup.assertQueue(replies, { arguments: { "x-expires": 60000 } });
    await setup.assertExchange(`${prefix}.send`, "direct");
    const { queue } = await setup.assertQueue("", { arguments: { "x-expires": 60000 } });
    await setup.bindQueue(queue, `${prefix}.send`, "normal");
    const program = spawn(process.execPath, ["-e", `
      const { APNs, Pushfleet } = require("./pushfleet.js"), net = require("node:net");
      const words = (promise) => promise.then((value) => JSON.stringify(value), (error) => error.name + " " + error.pending?.length);
      const database = async () => ({ query: async () => ({ rows: [] }) });
      (async () => {
        const phone = APNs("ab".repeat(32)), silent = net.createServer().listen(0, "127.0.0.1", async () => {
          const push = new Pushfleet(process.env.AMQP_URL, { app: "${APP}", prefix: "${prefix}", replies: "${replies}" });
          const deaf = new Pushfleet("amqp://127.0.0.1:" + silent.address().port, { app: "${APP}", timeout: 2 });
          const absent = new Pushfleet("amqp://127.0.0.1:1/", { app: "${APP}" });
          const sent = await push.send({ to: phone, title: "x" }), pushes = Array.from({ length: 600 }, () => ({ to: phone, title: "x" }));
          const ends = [sent.outcome(), push.feedback({ queue: "${replies}" }).next(), push.relay(database),
            deaf.send({ to: phone, title: "x" }), absent.send({ to: phone, title: "x" }), absent.feedback().next()].map(words);
          setTimeout(async () => {
            ends.push(words(push.sendMany(pushes)));
            await Promise.all([push.close(), push.close(), deaf.close(), absent.close()]);
            ends.push(words(push.send({ to: phone, title: "x" })), words(push.results().next()));
            console.log(JSON.stringify(await Promise.all(ends)));
            silent.close();
          }, 500);
        });
      })();`], { cwd: __dirname, stdio: ["ignore", "pipe", "inherit"], timeout: 8000 });
    let output = "";
    program.stdout.on("data", (bytes) => (output += bytes));
    assert.deepEqual(await once(program, "close"), [0, null], output);
    assert.deepEqual(JSON.parse(output), ["OutcomeUnknown 0", '{"done":true}', "0", "Unconfirmed 1", "Unconfirmed 1", '{"done":true}',
      "Unconfirmed 600", "Unconfirmed 1", '{"done":true}']);
  });

  test("a given connection is used, and is not opened again", async () => {
    const connection = await amqp.connect(AMQP_URL);
    const push = new Pushfleet(connection, { app: APP, timeout: 0.3 });
    assert.equal((await (await push.send({ to: PHONE, title: "x" })).outcome()).success, 1);
    await connection.close();
    await assert.rejects(push.send({ to: PHONE, title: "x" }), Unconfirmed);
  });

  test("a channel of a given connection that opens too late is closed", { timeout: 10000 }, async () => {
    const connection = await amqp.connect(AMQP_URL), create = connection.createConfirmChannel, closed = [];
    clients.push(connection);
    connection.createConfirmChannel = async () => {
      const late = await create.call(connection);
      closed.push(once(late, "close"));
      await sleep(500);
      return late;
    };
    await assert.rejects(producer({ timeout: 0.3 }, connection).send({ to: PHONE, title: "x" }), Unconfirmed);
    assert.equal(closed.length, 1);
    await closed[0];
  });
});

describe("the outbox", () => {
  const word = randomUUID();
  const connect = () => connectDatabase(word);
  const ids = async (tx) => (await tx.query("SELECT id FROM pushfleet_outbox ORDER BY seq")).rows.map((row) => row.id);

  test("sends in order what is committed, and nothing that is rolled back", async () => {
    const push = producer(), tx = await connect();
    await tx.query("BEGIN");
    await createOutbox(tx);
    const kept = [];
    for (const n of [0, 1, 2]) kept.push(await push.enqueue(tx, { to: PHONE, title: `${word} ${n} 100%?` }));
    await tx.query("COMMIT");
    await tx.query("BEGIN");
    await push.enqueue(tx, { to: PHONE, title: `${word} rolled back` });
    await tx.query("ROLLBACK");
    assert.deepEqual(await ids(tx), kept);
    assert.equal(await push.relay(connect, { poll: null }), 3);
    assert.deepEqual(await ids(tx), []);
    await tx.end();
    await awaitResults(push, kept);
    const titles = journal("apns", word).map((line) => JSON.parse(line).payload.aps.alert.title);
    assert.deepEqual(titles, [0, 1, 2].map((n) => `${word} ${n} 100%?`));
  });

  test("of a relay that is killed between confirm and deletion causes no second push", async () => {
    const push = producer(), tx = await connect(), title = randomUUID();
    const id = await push.enqueue(tx, { to: PHONE, title });
    const relay = spawn(process.execPath, ["-e", `
      const { Pushfleet } = require("./pushfleet.js"), { connectDatabase } = require("./test-database.js");
      new Pushfleet(process.env.AMQP_URL, { app: "${APP}" }).relay(async () => {
        const database = await connectDatabase("${word}");
        return { query: (sql, values) => sql.startsWith("DELETE") ? process.kill(process.pid, "SIGKILL") : database.query(sql, values) };
      }, { poll: null });`], { cwd: __dirname, stdio: "inherit" });
    assert.deepEqual(await once(relay, "exit"), [null, "SIGKILL"]);
    assert.deepEqual(await ids(tx), [id]);
    await tx.end();
    const before = await suppressed();
    await awaitResults(push, [id]);
    // The database may need a moment to see that the relay is gone and its locks are free.
    while ((await push.relay(connect, { poll: null })) === 0);
    // A lane keeps its order: when this push has its outcome, the copy before it is decided.
    await (await push.send({ to: PHONE, title: "later" })).outcome();
    assert.equal(journal("apns", title).length, 1);
    // The worker publishes its figures a little later.
    while ((await suppressed()) === before);
  });

  test("is shared by relays beside each other", async () => {
    const tx = await connect(), sent = [], push = producer(), title = randomUUID();
    await tx.query("BEGIN");
    for (let n = 0; n < 1200; n++) sent.push(await push.enqueue(tx, { to: PHONE, title: `${title} ${n}.` }));
    await tx.query("COMMIT");
    const counts = await Promise.all([1, 2, 3].map(() => producer().relay(connect, { poll: null })));
    assert.equal(counts[0] + counts[1] + counts[2], 1200);
    assert.deepEqual(await ids(tx), []);
    await tx.end();
    await awaitResults(push, sent);
    assert.equal(journal("apns", title).length, 1200);
  });
});

describe("arguments", () => {
  test("a wrong one is refused by its name, and nothing is sent", async () => {
    const fake = new FakePushfleet({ app: APP }), circle = {};
    circle.x = circle;
    for (const [words, push] of [
      [/^to: expected a target/, { to: "ab" }], [/^to: expected a target/, {}], [/^to: a list has 1 to 1000/, { to: [] }],
      [/^to: a list has 1 to 1000/, { to: [Everyone()] }], [/^tilte: unknown name/, { to: PHONE, tilte: "x" }],
      [/^notification.bodi: unknown name/, { to: PHONE, notification: { bodi: "x" } }],
      [/^notification.badge: expected auto, or a whole/, { to: PHONE, notification: { badge: 1.5 } }],
      [/^title: given twice/, { to: PHONE, title: "x", notification: { title: "y" } }],
      [/^ttl: expected a whole number/, { to: PHONE, ttl: -1 }], [/^ttl: expected 0 to 2419200/, { to: PHONE, ttl: 2419201 }],
      [/^lane: expected high or normal/, { to: PHONE, lane: "low" }], [/^key: expected 1 to 1024/, { to: PHONE, key: "é".repeat(513) }],
      [/^id: expected 1 to 255/, { to: PHONE, id: "a\nb" }], [/^data: the name "from" is reserved/, { to: PHONE, data: { from: "x" } }],
      ...[NaN, 1n, () => 1, [undefined], new Map(), new Date(0), { toJSON: () => 1 }, "\ud800"].map((x) => [/^data: /, { to: PHONE, data: { x } }]),
      [/^data: expected an object/, { to: PHONE, data: new Map() }], [/^title: /, { to: PHONE, title: "\ud800" }],
      [/^sender: /, { to: PHONE, sender: "\ud800" }], [/^apns: .*circular/, { to: PHONE, apns: circle }],
      [/^notification.title_loc_args: expected/, { to: PHONE, notification: { title_loc_args: [1] } }],
      [/^notification.sound: expected/, { to: PHONE, notification: { sound: ["x"] } }],
    ]) await assert.rejects(fake.sendMany([{ to: PHONE, title: "good" }, push]), { name: "TypeError", message: words });
    assert.deepEqual(fake.sent, []);
    const { request } = await fake.send({ to: PHONE, data: { x: undefined, y: null } });
    assert.deepEqual(request.data, { y: null });
    assert.throws(() => new Pushfleet(AMQP_URL, {}), /^TypeError: app: /);
    assert.throws(() => new Pushfleet("http://broker", { app: APP }), /^TypeError: amqp: expected a URL/);
  });

  test("a malformed target is refused without showing it", () => {
    const kinds = { APNs, FCM, Registration, Group, User, Topic, Condition, Installation, Channel, FCMTopic, WebPush };
    for (const [name, value] of [["APNs", "abc"], ["FCM", "a b"], ["FCM", "fid:x"], ["Registration", "pf1r~x"], ["Group", "pf1g~"], ["User", ""],
      ["User", "é".repeat(128)], ["User", "\ud800"], ["Topic", "a b"], ["Condition", ""], ["Installation", "secret"], ["Channel", " "], ["FCMTopic", ""],
      ["WebPush", { endpoint: "https://secret" }]]) {
      assert.throws(() => kinds[name](value), (error) => error.message.startsWith(`${name}: expected`) && !error.message.includes("secret"));
    }
  });

  test("agree with the schema", async () => {
    const schema = JSON.parse(fs.readFileSync(`${__dirname}/../../docs/schema/send-request.schema.json`, "utf8")).$defs;
    const properties = schema.gcm.properties, fake = new FakePushfleet({ app: APP });
    const accepts = async (push) => fake.send({ to: PHONE, ...push }).then(() => true, (error) => !/unknown name/.test(error.message));
    const others = ["to", "registration_ids", "condition", "notification_key", "notification", "collapse_key", "time_to_live"];
    for (const name of Object.keys(properties)) if (!others.includes(name)) assert.ok(await accepts({ [name]: {} }), name);
    for (const name of Object.keys(schema.notification.properties)) assert.ok(await accepts({ notification: { [name]: {} } }), name);
    const { request } = await fake.send({ to: PHONE, title: "t", body: "b", key: "k", ttl: 1, data: {}, dry_run: true, notification: { badge: "auto" } });
    for (const name of Object.keys(request)) assert.ok(name in properties, name);
    const subscription = { endpoint: "https://push.example.com/1", keys: { p256dh: "BA", auth: "AA" } };
    for (const target of [PHONE, FCM("a:b-c"), Installation("c" + "a".repeat(21)), WebPush(subscription), Registration("pf1r~0" + "0".repeat(25)),
      Group("pf1g~0" + "0".repeat(25)), User("anna"), User("a%41"), Topic("news"), FCMTopic("news"), Channel("aa=="), Everyone()]) {
      assert.match(target.text, new RegExp(properties.to.pattern, "u"));
    }
  });
});

test("the fake records requests, plays a script, and gives events", async () => {
  const fake = new FakePushfleet({ app: APP });
  const sent = await fake.send({ to: [PHONE, DEAD], title: "x", key: "goal-77", lane: "high" });
  assert.deepEqual(fake.sent, [sent]);
  assert.deepEqual([sent.lane, sent.request.collapse_key, (await sent.outcome()).success], ["high", "goal-77", 2]);
  const refused = { success: 0, failure: 1, results: [{ error: "NotRegistered" }] };
  fake.script.push(refused, new OutcomeUnknown("late"), new Unconfirmed("down"));
  assert.deepEqual(await (await fake.send({ to: DEAD, title: "x" })).outcome(), refused);
  await assert.rejects((await fake.send({ to: PHONE, title: "x" })).outcome(), OutcomeUnknown);
  const error = await fake.send({ to: PHONE, title: "x" }).catch((each) => each);
  assert.ok(error instanceof Unconfirmed && error instanceof PushfleetError && !(error instanceof Refused));
  await fake.sendMany(error.pending);
  assert.equal(fake.sent.length, 4);
  fake.feedbackEvents.push({ event: "NotRegistered" }, { event: "Stale" });
  await assert.rejects(async () => {
    for await (const event of fake.feedback()) throw new RangeError(event.event);
  }, RangeError);
  const events = [];
  for await (const event of fake.feedback()) events.push(event.event);
  assert.deepEqual(events, ["NotRegistered", "Stale"]);
});
