"use strict";
/**
 * Test equipment: as much of AMQP 0-9-1 over node:net as the tests of the client need, with the interface of amqplib. It isn't for
 * production: no TLS, no heartbeats, no frames above frame_max, and it leaves out the headers of incoming messages.
 */
const { EventEmitter } = require("node:events");
const net = require("node:net");

// The properties of a message in the order of their flags; class and method numbers as in the specification.
const PROPERTIES = ["contentType", "contentEncoding", "headers", "deliveryMode", "priority", "correlationId", "replyTo", "expiration",
  "messageId", "timestamp", "type", "userId", "appId"];
const BODY_SIZE = 65536;

class Writer {
  parts = [];
  put(size, value) {
    const part = Buffer.alloc(size);
    size === 8 ? part.writeBigUInt64BE(BigInt(value)) : part.writeUIntBE(value, 0, size);
    this.parts.push(part);
    return this;
  }
  short(text) {
    this.put(1, Buffer.byteLength(text)).parts.push(Buffer.from(text));
    return this;
  }
  long(bytes) {
    this.put(4, bytes.length).parts.push(Buffer.from(bytes));
    return this;
  }
  table(values = {}) {
    const table = new Writer();
    for (const [name, value] of Object.entries(values)) {
      table.short(name);
      if (typeof value === "string") table.put(1, 0x53).long(Buffer.from(value));
      else if (typeof value === "boolean") table.put(1, 0x74).put(1, Number(value));
      else if (Number.isSafeInteger(value) && value >= 0) table.put(1, 0x6c).put(8, value);
      else throw new TypeError(`${name}: a value that this equipment doesn't write`);
    }
    return this.long(table.bytes());
  }
  bytes() {
    return Buffer.concat(this.parts);
  }
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  take(size) {
    this.at += size;
    return size === 8 ? Number(this.bytes.readBigUInt64BE(this.at - 8)) : this.bytes.readUIntBE(this.at - size, size);
  }
  slice(size) {
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
  short() {
    return this.slice(this.take(1)).toString();
  }
  table() {
    this.slice(this.take(4));
    return {};
  }
}

class Connection extends EventEmitter {
  channels = new Map();
  pending = Buffer.alloc(0);

  constructor(url, { timeout = 0 } = {}) {
    super();
    this.url = new URL(url);
    this.socket = net.connect(Number(this.url.port || 5672), this.url.hostname);
    this.socket.setTimeout(timeout, () => this.lose(new Error("connect ETIMEDOUT")));
    this.opened = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
    this.socket.on("connect", () => this.socket.write("AMQP\0\0\x09\x01"));
    this.socket.on("data", (bytes) => this.read(bytes));
    this.socket.on("error", (error) => this.lose(error));
    this.socket.on("close", () => this.lose(new Error("the socket is closed")));
  }

  lose(error) {
    if (this.lost) return;
    this.lost = error;
    this.socket.destroy();
    this.reject(error);
    for (const channel of this.channels.values()) channel.end();
    if (!this.isClosing && this.listenerCount("error") > 0) this.emit("error", error);
    this.emit("close", error);
    this.closed?.();
  }

  frame(type, channel, payload) {
    if (!this.lost) this.socket.write(new Writer().put(1, type).put(2, channel).long(payload).put(1, 0xce).bytes());
  }
  method(channel, type, number, writer = new Writer()) {
    this.frame(1, channel, Buffer.concat([new Writer().put(2, type).put(2, number).bytes(), writer.bytes()]));
  }

  read(bytes) {
    this.pending = Buffer.concat([this.pending, bytes]);
    while (this.pending.length >= 7) {
      const size = this.pending.readUInt32BE(3);
      if (this.pending.length < size + 8) return;
      const [type, channel] = [this.pending[0], this.pending.readUInt16BE(1)];
      const reader = new Reader(this.pending.subarray(7, 7 + size));
      this.pending = this.pending.subarray(size + 8);
      if (type === 8) continue;
      if (channel > 0) this.channels.get(channel)?.received(type, reader);
      else this.received(reader.take(2) * 1000 + reader.take(2), reader);
    }
  }

  received(method, reader) {
    const { username, password, pathname } = this.url;
    switch (method) {
      case 10010: // start
        return this.method(0, 10, 11, new Writer().table({}).short("PLAIN")
          .long(Buffer.from(`\0${decodeURIComponent(username) || "guest"}\0${decodeURIComponent(password) || "guest"}`)).short("en_US"));
      case 10030: // tune: no heartbeats
        this.method(0, 10, 31, new Writer().put(2, reader.take(2)).put(4, reader.take(4)).put(2, 0));
        return this.method(0, 10, 40, new Writer().short(decodeURIComponent(pathname.slice(1)) || "/").short("").put(1, 0));
      case 10041: // open-ok
        this.socket.setTimeout(0);
        return this.resolve(this);
      case 10050: { // close
        const error = Object.assign(new Error(), { code: reader.take(2) });
        error.message = reader.short();
        this.method(0, 10, 51);
        return this.lose(error);
      }
      case 10051: // close-ok
        return this.lose(new Error("closed"));
    }
  }

  async createConfirmChannel() {
    if (this.lost) throw this.lost;
    const channel = new Channel(this, Math.max(0, ...this.channels.keys()) + 1);
    this.channels.set(channel.number, channel);
    await channel.call(20, 10, new Writer().short(""));
    await channel.call(85, 10, new Writer().put(1, 0));
    return channel;
  }

  async close() {
    if (this.isClosing) throw new Error("Connection closing");
    this.isClosing = true;
    return new Promise((resolve) => {
      if (this.lost) return resolve();
      this.closed = resolve;
      this.method(0, 10, 50, new Writer().put(2, 200).short("").put(4, 0));
    });
  }
}

class Channel extends EventEmitter {
  waiting = [];
  consumers = new Map();
  unconfirmed = new Map();
  published = 0;

  constructor(connection, number) {
    super();
    Object.assign(this, { connection, number });
  }

  /** Sends a method and resolves with the answer's reader. */
  call(type, number, writer) {
    return new Promise((resolve, reject) => {
      if (this.isClosed) return reject(new Error("the channel is closed"));
      this.waiting.push({ resolve, reject });
      this.connection.method(this.number, type, number, writer);
    });
  }

  end(error) {
    if (this.isClosed) return;
    this.isClosed = true;
    this.connection.channels.delete(this.number);
    for (const { reject } of this.waiting) reject(error ?? new Error("the channel is closed"));
    for (const confirmed of this.unconfirmed.values()) confirmed(new Error("channel closed"));
    if (error) this.emit("error", error);
    this.emit("close");
  }

  received(type, reader) {
    if (type === 2) return this.header(reader);
    if (type === 3) return this.body(reader.bytes);
    const method = reader.take(2) * 1000 + reader.take(2);
    switch (method) {
      case 20040: { // close
        const error = Object.assign(new Error(), { code: reader.take(2) });
        error.message = reader.short();
        this.connection.method(this.number, 20, 41);
        return this.end(error);
      }
      case 60030: // cancel
        return this.consumers.get(reader.short())?.(null);
      case 60050: // return
        this.message = { fields: {}, take: (message) => this.emit("return", message) };
        return;
      case 60060: { // deliver
        const take = this.consumers.get(reader.short());
        this.message = { fields: { deliveryTag: reader.take(8), redelivered: reader.take(1) === 1 }, take };
        return;
      }
      case 60080: // ack
      case 60120: { // nack
        const [tag, bits] = [reader.take(8), reader.take(1)];
        for (const [number, confirmed] of this.unconfirmed) {
          if (number !== tag && !(bits & 1 && number < tag)) continue;
          this.unconfirmed.delete(number);
          confirmed(method === 60080 ? null : new Error("message nacked"));
        }
        return;
      }
      default:
        return this.waiting.shift()?.resolve(reader);
    }
  }

  header(reader) {
    reader.take(4);
    const message = Object.assign(this.message, { size: reader.take(8), parts: [], properties: {} });
    const flags = reader.take(2);
    PROPERTIES.forEach((name, index) => {
      if (!(flags & (1 << (15 - index)))) return;
      message.properties[name] = name === "headers" ? reader.table() : name === "timestamp" ? reader.take(8)
        : name === "deliveryMode" || name === "priority" ? reader.take(1) : reader.short();
    });
    if (message.size === 0) this.body(Buffer.alloc(0));
  }

  body(bytes) {
    const message = this.message;
    message.parts.push(bytes);
    message.size -= bytes.length;
    if (message.size > 0) return;
    message.content = Buffer.concat(message.parts);
    message.take?.(message);
  }

  publish(exchange, routingKey, content, options, confirmed = () => {}) {
    if (this.isClosed) throw new Error("Channel closed");
    this.unconfirmed.set(++this.published, confirmed);
    const values = { ...options, deliveryMode: options.persistent ? 2 : 1 };
    const writer = new Writer();
    let flags = 0;
    PROPERTIES.forEach((name, index) => {
      if (values[name] === undefined) return;
      flags |= 1 << (15 - index);
      if (name === "headers") writer.table(values.headers);
      else if (name === "timestamp") writer.put(8, values.timestamp);
      else if (name === "deliveryMode" || name === "priority") writer.put(1, values[name]);
      else writer.short(values[name]);
    });
    this.connection.method(this.number, 60, 40, new Writer().put(2, 0).short(exchange).short(routingKey).put(1, options.mandatory ? 1 : 0));
    const header = new Writer().put(2, 60).put(2, 0).put(8, content.length).put(2, flags);
    this.connection.frame(2, this.number, Buffer.concat([header.bytes(), writer.bytes()]));
    for (let at = 0; at < content.length; at += BODY_SIZE) this.connection.frame(3, this.number, content.subarray(at, at + BODY_SIZE));
    return true;
  }

  prefetch(count) {
    return this.call(60, 10, new Writer().put(4, 0).put(2, count).put(1, 0));
  }

  /** The consumer is known before the broker's answer, so that no message can come too early. */
  consume(queue, take, { noAck = false } = {}) {
    const consumerTag = `consumer-${this.consumers.size}`;
    this.consumers.set(consumerTag, take);
    return this.call(60, 20, new Writer().put(2, 0).short(queue).short(consumerTag).put(1, noAck ? 2 : 0).table({}));
  }

  async close() {
    await this.call(20, 40, new Writer().put(2, 200).short("").put(4, 0));
    this.end();
  }

  ack(message) {
    if (this.isClosed) throw new Error("Channel closed");
    this.connection.method(this.number, 60, 80, new Writer().put(8, message.fields.deliveryTag).put(1, 0));
  }

  // Only the tests themselves need these.
  async assertQueue(queue, { exclusive = false, durable = true, arguments: values } = {}) {
    const bits = (durable ? 2 : 0) | (exclusive ? 4 : 0);
    return { queue: (await this.call(50, 10, new Writer().put(2, 0).short(queue).put(1, bits).table(values))).short() };
  }
  assertExchange(exchange, type) {
    return this.call(40, 10, new Writer().put(2, 0).short(exchange).short(type).put(1, 2).table({}));
  }
  bindQueue(queue, exchange, routingKey) {
    return this.call(50, 20, new Writer().put(2, 0).short(queue).short(exchange).short(routingKey).put(1, 0).table({}));
  }
}

exports.connect = (url, options) => new Connection(url, options).opened;
