"""Sends pushes through pushfleet, and reads results and feedback. Python 3.9 and pika 1.2, or newer.

    push = Pushfleet("amqp://user:password@broker/", app="com.example.app")
    sent = push.send(to=User("anna"), title="Goal!", body="1:0", key="goal-77", lane="high")
    print(sent.outcome(timeout=30)["success"])

Use a Pushfleet in one thread only. docs/send/clients.md explains it, docs/send/request.md the fields. Times are in seconds.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import re
import sys
import time
import uuid
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from typing import (TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, Iterator, List, Literal, Optional, Sequence, TypedDict,
                    Union, get_args, get_origin, get_type_hints)

import pika
from pika.adapters.select_connection import IOLoop
from pika.exceptions import AMQPConnectionError, AMQPError, ChannelClosedByBroker

if TYPE_CHECKING:
    from typing_extensions import Unpack

WINDOW = 500  # requests that are published before their confirms are awaited
DIRECT = "amq.rabbitmq.reply-to"
log = logging.getLogger("pushfleet")

class PushfleetError(Exception):
    """`pending` has the requests that the broker has not confirmed. `send_many(error.pending)` sends them under the same ids."""

    def __init__(self, text: str, pending: Iterable[Sent] = ()) -> None:
        super().__init__(text)
        self.pending = list(pending)

class Refused(PushfleetError):
    """The broker returned or refused a request: the topology isn't declared, or its user lacks a permission."""

class Unconfirmed(PushfleetError):
    """Nobody knows whether the broker has the pending requests. Send them again under the same ids."""

class OutcomeUnknown(PushfleetError):
    """There is no outcome yet, or its way back is lost. The push may have been delivered, or may still be."""

# Targets

class Target:
    """Where a push goes. Raises ValueError for a malformed value; the text of the error doesn't contain the value."""
    pattern, rule, prefix, field, is_entry = "", "", "", "to", True

    def __init__(self, value: str) -> None:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise ValueError(f"{type(self).__name__}: expected {self.rule}")
        self.text = self.prefix + value

class APNs(Target):
    pattern, rule, prefix = r"([0-9a-fA-F]{2}){1,100}", "a token of 2 to 200 hexadecimal digits in pairs", "apns:"

class FCM(Target):
    pattern = r"(?!fid:)(?!.*(\.\.|%2[eEfF]))[A-Za-z0-9_:.%\-]{1,4096}"
    rule, prefix = "a token of up to 4096 of a-z A-Z 0-9 _ : . % -", "fcm:"

class Installation(Target):
    pattern, rule, prefix = r"[cdef][A-Za-z0-9_\-]{21}", "the 22 characters of a Firebase installation", "fid:"

class WebPush(Target):
    """A browser's subscription: the object that PushSubscription.toJSON() gives, with endpoint and keys."""
    rule = "an object with endpoint, keys.p256dh and keys.auth"

    def __init__(self, subscription: Mapping[str, Any]) -> None:
        keys = subscription.get("keys") if isinstance(subscription, Mapping) else None
        if not isinstance(keys, Mapping) or not all((subscription.get("endpoint"), keys.get("p256dh"), keys.get("auth"))):
            raise ValueError(f"WebPush: expected {self.rule}")
        self.text = "webpush:" + base64.urlsafe_b64encode(_json("WebPush", subscription).encode()).decode().rstrip("=")

class Registration(Target):
    pattern, rule = r"pf1r~[0-7][0-9a-hjkmnp-tv-z]{25}", "a registration that the registry issued: pf1r~ and 26 characters"

class Group(Target):
    pattern, rule = r"pf1g~[0-7][0-9a-hjkmnp-tv-z]{25}", "a notification key that the registry issued: pf1g~ and 26 characters"

class User(Target):
    pattern, rule, prefix = r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}", "1 to 255 bytes of UTF-8 without control characters", "/users/"

    def __init__(self, value: str) -> None:
        super().__init__(value)
        if len(value.encode()) > 255:
            raise ValueError(f"User: expected {self.rule}")
        self.text = self.prefix + re.sub("%(?=[0-9a-fA-F]{2})", "%25", value)

class Topic(Target):
    pattern, rule, prefix = r"[a-zA-Z0-9\-_.~%]{1,899}", "1 to 899 of a-z A-Z 0-9 - _ . ~ %", "/topics/"

class Condition(Target):
    pattern, rule, field, is_entry = r"(?s).+", "a condition such as 'a' in topics && !('b' in topics)", "condition", False

class FCMTopic(Target):
    pattern, rule, prefix, is_entry = r"[a-zA-Z0-9\-_.~%]{1,900}", "1 to 900 of a-z A-Z 0-9 - _ . ~ %", "fcm:/topics/", False

class Channel(Target):
    pattern, rule, prefix, is_entry = r"[A-Za-z0-9+/=_\-]{1,256}", "the id of a broadcast channel of APNs", "apns-channel:", False

class Everyone(Target):
    is_entry = False

    def __init__(self) -> None:
        self.text = "/all"

# Requests

class Notification(TypedDict, total=False):
    title: str; body: str; subtitle: str
    title_loc_key: str; body_loc_key: str; subtitle_loc_key: str
    title_loc_args: List[str]; body_loc_args: List[str]; subtitle_loc_args: List[str]
    badge: Union[int, Literal["auto"]]
    sound: Union[str, Dict[str, Any]]
    click_action: str; icon: str; color: str; tag: str; android_channel_id: str; image: str; ticker: str
    sticky: bool; local_only: bool; default_sound: bool
    event_time: str; notification_priority: str; notification_count: int; visibility: str

class Push(TypedDict, total=False):
    """The arguments of `send` and `enqueue`, and an entry of `send_many`. Only `to` is required. None means absent."""
    to: Union[Target, Sequence[Target]]
    title: str
    body: str
    notification: Notification  # further keys beside title and body
    data: Mapping[str, Any]
    key: str  # the collapse key
    ttl: int  # seconds
    lane: Literal["high", "normal"]  # the queue: high for pushes that a user waits for; default: normal
    priority: Literal["high", "normal"]  # for the device
    content_available: bool; mutable_content: bool; delay_while_idle: bool; dry_run: bool
    restricted_package_name: str
    apns: Mapping[str, Any]; android: Mapping[str, Any]; android_v2: Mapping[str, Any]; webpush: Mapping[str, Any]
    id: str  # the message id; default: a new UUID
    sender: Union[str, int]
    environment: Literal["production", "sandbox"]
    unknown: Literal["retry", "drop"]  # after a push without an answer

Result = Dict[str, Any]  # docs/schema/result.schema.json or docs/schema/fan-out-result.schema.json
Feedback = Dict[str, Any]  # docs/schema/feedback.schema.json
_FIELDS = {"key": "collapse_key", "ttl": "time_to_live"}
_HEADERS = {"sender": "x-push-sender", "environment": "x-push-environment", "unknown": "x-push-unknown"}
_PUSH, _NOTIFICATION = get_type_hints(Push), get_type_hints(Notification)
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

class Sent:
    """A request with its id. The same id and body make a copy recognisable."""

    def __init__(self, id: str, app: str, lane: str, timestamp: int, headers: Dict[str, Any], body: str) -> None:
        self.id, self.app, self.lane, self.timestamp, self.headers, self.body = id, app, lane, timestamp, headers, body
        self._fate = ""  # the broker's word: confirmed, nacked, returned
        self._answer: Optional[Result] = None
        self._client: Optional[Pushfleet] = None
        self._link: Optional[_Link] = None

    @property
    def request(self) -> Dict[str, Any]:
        return json.loads(self.body)

    def outcome(self, timeout: float = 30) -> Result:
        """Waits for the result. Raises OutcomeUnknown if none has come after `timeout` seconds, or none can come."""
        if self._client is None:
            raise PushfleetError("a request of an outbox has no way back: read its result from results()")
        return self._client._outcome(self, timeout)

def _json(name: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
        return text
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None

def _is(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is Union:
        return any(_is(value, each) for each in get_args(hint))
    if get_origin(hint) is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    kind = Mapping if hint is Notification else get_origin(hint) or hint
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))

def _check(place: str, given: Mapping[str, Any], hints: Dict[str, Any]) -> None:
    """Raises TypeError or ValueError, which name the argument."""
    for name, value in given.items():
        if name not in hints:
            raise TypeError(f"{place}{name}: unknown name")
        if name != "to" and not _is(value, hints[name]):
            kind = hints[name].__name__ if isinstance(hints[name], type) else str(hints[name]).replace("typing.", "")
            raise TypeError(f"{place}{name}: expected {kind}, not {type(value).__name__}")

def _target(to: Any) -> Dict[str, Any]:
    if isinstance(to, Target):
        return {to.field: to.text}
    if not isinstance(to, (list, tuple)) or not all(isinstance(entry, Target) for entry in to):
        raise TypeError('to: expected a target such as User("anna"), or a list of targets')
    if not 1 <= len(to) <= 1000 or not all(entry.is_entry for entry in to):
        raise ValueError("to: a list has 1 to 1000 targets, each of them a device, user, group or topic")
    return {"registration_ids": [entry.text for entry in to]}

def _make(app: str, push: Push) -> Sent:
    given: Dict[str, Any] = {name: value for name, value in push.items() if value is not None}
    _check("", given, _PUSH)
    notification = dict(given.get("notification", ()))
    _check("notification.", notification, _NOTIFICATION)
    for name, value in given.items():
        if name != "to":
            _json(name, value)
    for name, limit in (("key", 1024), ("id", 255)):
        text = given.get(name, "x")
        if not 1 <= len(text.encode()) <= limit or _UNSEEN.search(text):
            raise ValueError(f"{name}: expected 1 to {limit} bytes of UTF-8 without control characters")
    if not 0 <= given.get("ttl", 0) <= 2_419_200:
        raise ValueError("ttl: expected 0 to 2419200 seconds")
    for name in given.get("data", ()):
        if not isinstance(name, str) or re.match("from$|message_type$|google|gcm", name):
            raise ValueError(f"data: the name {name!r} is reserved, or isn't a string")
    for name in ("title", "body"):
        if name in given and name in notification:
            raise ValueError(f"{name}: given twice, also as notification.{name}")
        if name in given:
            notification[name] = given.pop(name)
    if notification:
        given["notification"] = notification
    request, lane = _target(given.pop("to", None)), given.pop("lane", "normal")
    id = given.pop("id", None) or str(uuid.uuid4())
    headers = {header: given.pop(name) for name, header in _HEADERS.items() if name in given}
    request.update((_FIELDS.get(name, name), value) for name, value in given.items())
    return Sent(id, app, lane, int(time.time()), headers, _json("to", request))

# The connection

class _Link:
    """One connection with one channel that confirms. Pika's loop runs in the caller's thread, while it waits. Raises AMQPError."""

    def __init__(self, parameters: pika.connection.Parameters, deadline: float) -> None:
        self.error: Optional[AMQPError] = None
        self.channel: Any = None
        self.unconfirmed: Dict[int, Sent] = {}
        self._published = 0
        self._loop = IOLoop()
        self._is_closed = False
        self._connection = pika.SelectConnection(parameters, self._connected, self._lost, self._lost, self._loop)
        try:
            if not self.wait(lambda: self.channel, deadline):
                raise AMQPConnectionError("the broker does not answer")
        except BaseException:
            self.close()
            raise

    def wait(self, is_ready: Callable[[], Any], deadline: Optional[float]) -> bool:
        """False if the deadline, a time of time.monotonic(), has passed."""
        while not is_ready():
            if self.error and not self._is_closed:
                raise self.error
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            timer = None if left is None else self._loop.call_later(left, self._loop.stop)
            self._loop.start()
            if timer:
                self._loop.remove_timeout(timer)
        return True

    def turn(self) -> None:
        """Lets pika read and write once, without waiting."""
        self._loop.add_callback_threadsafe(self._loop.stop)
        self._loop.start()

    def publish(self, exchange: str, sent: Sent, properties: pika.BasicProperties) -> None:
        self._published += 1
        self.unconfirmed[self._published] = sent
        sent._fate = ""
        self.channel.basic_publish(exchange, sent.lane, sent.body.encode(), properties, mandatory=True)

    def close(self) -> None:
        """Waits for at most 1 s until the broker has everything that was written."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not (self._connection.is_closing or self._connection.is_closed):
                self._connection.close()
            self.wait(lambda: self._connection.is_closed, time.monotonic() + 1)
            # Pika closes the socket in a callback of its own.
            self.turn()
        except AssertionError:
            pass  # Pika fails one of its assertions if the connection was still opening.
        self._loop.close()
        self.error = self.error or AMQPConnectionError("closed")

    def _connected(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._opened)

    def _opened(self, channel: Any) -> None:
        def ready(_: Any) -> None:
            self.channel = channel
            self._loop.stop()

        channel.add_on_close_callback(self._lost)
        channel.add_on_cancel_callback(lambda _: self._lost(channel, AMQPConnectionError("a queue was deleted")))
        channel.add_on_return_callback(self._returned)
        channel.confirm_delivery(self._decided, ready)

    def _lost(self, _: Any, reason: Any) -> None:
        if not self.channel and "SSLError(" in repr(reason):
            reason = f"amqps: TLS failed, the port may be one without TLS: {reason!r}"
        self.error = self.error or (reason if isinstance(reason, AMQPError) else AMQPConnectionError(str(reason) or repr(reason)))
        self._loop.stop()

    def _returned(self, _channel: Any, _method: Any, properties: Any, _body: bytes) -> None:
        for sent in self.unconfirmed.values():
            if sent.id == properties.message_id:
                sent._fate = "returned"

    def _decided(self, frame: Any) -> None:
        word, tag = "confirmed" if isinstance(frame.method, pika.spec.Basic.Ack) else "nacked", frame.method.delivery_tag
        for number in [n for n in self.unconfirmed if n <= tag] if frame.method.multiple else [tag]:
            sent = self.unconfirmed.pop(number, None)
            if sent is not None:
                sent._fate = sent._fate or word
        self._loop.stop()

    def consume(self, queue: str, take: Callable[..., None], deadline: float, auto_ack: bool = False) -> None:
        """Calls `take(channel, method, properties, body)` for each message, while something waits."""
        accepted: List[Any] = []

        def note(then: Callable[..., None]) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                then(*arguments)
                self._loop.stop()

            return call

        self.channel.basic_qos(prefetch_count=100)
        self.channel.basic_consume(queue, note(take), auto_ack=auto_ack, callback=note(accepted.append))
        if not self.wait(lambda: accepted, deadline):
            raise AMQPConnectionError(f"the broker does not answer: {queue}")

def _pauses() -> Iterator[float]:
    """Seconds between attempts: from a tenth of a second, doubled up to 5 s, each up to half shorter by chance."""
    pause = 0.1
    while True:
        yield pause * random.uniform(0.5, 1)
        pause = min(pause * 2, 5)

class Pushfleet:
    """A producer, and a reader of results and feedback.

    amqp: the broker's URL, or pika's Parameters. app: the application's id in the fleet's configuration.
    timeout: the seconds that a request may take until its confirm, with all attempts; then Unconfirmed is raised.
    replies: where results come back. RabbitMQ's direct reply-to loses them with the connection; a durable queue, which only
    this object reads and which the setting `replyTo` allows, does not. None: `outcome` isn't used.
    """

    def __init__(self, amqp: Union[str, pika.connection.Parameters], app: str, *, timeout: float = 30,
                 replies: Optional[str] = DIRECT, prefix: str = "push") -> None:
        if isinstance(amqp, str) and not re.match("amqps?://", amqp):
            raise ValueError("amqp: expected a URL that begins with amqp:// or amqps://")
        self._parameters = pika.URLParameters(amqp) if isinstance(amqp, str) else amqp
        if not isinstance(app, str) or not app:
            raise TypeError("app: expected the application's id")
        self.app, self._timeout, self._replies, self._prefix = app, timeout, replies, prefix
        self._current: Optional[_Link] = None
        self._is_closed = False
        # Sent requests whose result nobody holds are forgotten.
        self._waiting: weakref.WeakValueDictionary[str, Sent] = weakref.WeakValueDictionary()

    def __enter__(self) -> Pushfleet:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is sent or read afterwards. A loop of `feedback` or `results` ends when it asks for the next event."""
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        if self._current:
            self._current.close()
            self._current = None

    # Sending

    def send(self, **push: Unpack[Push]) -> Sent:
        """Publishes a request and waits for the broker's confirm. Raises Refused, Unconfirmed; TypeError, ValueError for arguments."""
        return self.send_many([push])[0]

    def send_many(self, pushes: Iterable[Union[Push, Sent]]) -> List[Sent]:
        """As `send`, with many requests on their way at once. No request is sent if the arguments of one are wrong.

        After an error, `error.pending` has the requests that aren't confirmed; all others are.
        """
        every = [push if isinstance(push, Sent) else self._mine(_make(self.app, push)) for push in pushes]
        for start in range(0, len(every), WINDOW):
            self._deliver(every[start:start + WINDOW], every[start + WINDOW:])
        return every

    def _mine(self, sent: Sent) -> Sent:
        sent._client = self
        return sent

    def _deliver(self, waiting: List[Sent], rest: List[Sent]) -> None:
        deadline, count = time.monotonic() + self._timeout, len(waiting)
        for sent in waiting:
            sent._fate = ""  # of an earlier call
        for pause in _pauses():
            problem = self._attempt(waiting, rest, deadline)
            waiting = [sent for sent in waiting if sent._fate != "confirmed"]
            if not waiting:
                return
            if any(sent._fate == "returned" for sent in waiting):
                raise Refused("no queue accepts the request: run pushfleet topology", waiting + rest)
            if self._is_closed:
                raise Unconfirmed("not confirmed: the client is closed", waiting + rest)
            if time.monotonic() + pause > deadline:
                raise Unconfirmed(f"not confirmed within {self._timeout} s: {problem}", waiting + rest)
            log.warning("sent again under the same ids: %d of %d: %s", len(waiting), count, problem)
            time.sleep(pause)

    def _attempt(self, waiting: List[Sent], rest: List[Sent], deadline: float) -> str:
        """Publishes once and waits for the confirms; each request then has its fate, if it is known. Returns the problem."""
        try:
            link = self._connect(deadline)
            for sent in waiting:
                link.publish(f"{self._prefix}.send", sent, self._properties(sent, link))
            end = time.monotonic() + self._timeout / 3
            if link.wait(lambda: not link.unconfirmed, min(end, deadline)):
                return "the broker refused them for now, a queue may be full"
            problem = AMQPConnectionError("the broker does not confirm")
            if end > deadline:  # Too short an attempt to give up the connection, to which outcomes of other requests may come.
                link.unconfirmed.clear()
                return repr(problem)
        except AMQPError as error:
            problem = error
        self._disconnect(problem, [sent for sent in waiting if sent._fate != "confirmed"] + rest)
        return repr(problem)

    def _properties(self, sent: Sent, link: _Link) -> pika.BasicProperties:
        reply: Dict[str, Any] = {}
        if self._replies and sent._client is self:
            self._waiting[sent.id], sent._link = sent, link
            reply = {"reply_to": self._replies, "correlation_id": sent.id}
        return pika.BasicProperties(
            content_type="application/json", delivery_mode=2, message_id=sent.id, app_id=sent.app, timestamp=sent.timestamp,
            headers=sent.headers or None, user_id=getattr(self._parameters.credentials, "username", None), **reply)

    def _connect(self, deadline: float) -> _Link:
        if self._is_closed:
            raise AMQPConnectionError("the client is closed")
        if self._current is None:
            self._current = _Link(self._parameters, deadline)
            if self._replies:
                self._current.consume(self._replies, self._answered, deadline, auto_ack=self._replies == DIRECT)
        return self._current

    def _disconnect(self, problem: AMQPError, pending: List[Sent]) -> None:
        self._drop()
        if isinstance(problem, ChannelClosedByBroker) and problem.reply_code in (403, 404, 406):
            raise Refused(f"the broker refused: {problem.reply_text}", pending) from problem

    def _answered(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        sent = self._waiting.pop(properties.correlation_id or "", None)
        if self._replies != DIRECT:
            channel.basic_ack(method.delivery_tag)
        if sent is not None:
            try:
                sent._answer = _decoded(body, self._replies)
            except PushfleetError as error:
                log.warning("%s", error)

    def _outcome(self, sent: Sent, timeout: float) -> Result:
        if not self._replies:
            raise PushfleetError("replies: None was given, so no outcome comes back")
        deadline, pauses = time.monotonic() + timeout, _pauses()
        while sent._answer is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise OutcomeUnknown(f"no outcome of {sent.id} after {timeout} s; it may still come")
            try:
                if self._is_closed or (self._replies == DIRECT and (sent._link is None or sent._link is not self._current)):
                    raise OutcomeUnknown(f"the connection to which the outcome of {sent.id} would come is lost")
                self._connect(deadline).wait(lambda: sent._answer is not None, deadline)
            except AMQPError as error:
                self._disconnect(error, [])
                time.sleep(min(next(pauses), max(left, 0)))
        return sent._answer

    # Reading

    def results(self, queue: Optional[str] = None, idle: Optional[float] = None) -> Iterator[Result]:
        """Results of `push.results`, or of your queue that is bound to push.events. As `feedback`."""
        return self._events(queue or f"{self._prefix}.results", idle)

    def feedback(self, queue: Optional[str] = None, idle: Optional[float] = None) -> Iterator[Feedback]:
        """Events about tokens of all applications. An event is acknowledged when the loop asks for the next one.

        So an event may come twice, and one whose loop body raised or left the loop comes again. The loop ends after `idle` seconds
        without an event; without `idle` it doesn't end. Raises Refused, and PushfleetError if the broker can't be reached.
        """
        return self._events(queue or f"{self._prefix}.feedback", idle)

    def _events(self, queue: str, idle: Optional[float]) -> Iterator[Dict[str, Any]]:
        link: Optional[_Link] = None
        events: Deque[Any] = deque()
        deadline, pauses = time.monotonic() + self._timeout, _pauses()
        try:
            while not self._is_closed:
                try:
                    if link is None:
                        link = _Link(self._parameters, deadline)
                        events = deque()
                        link.consume(queue, lambda *delivery: events.append(delivery), deadline)
                    try:
                        if not link.wait(lambda: events and not link.error, None if idle is None else time.monotonic() + idle):
                            return
                    finally:  # the broker was reached until now
                        deadline, pauses = time.monotonic() + self._timeout, _pauses()
                    channel, method, _, body = events.popleft()
                    yield _decoded(body, queue)
                    channel.basic_ack(method.delivery_tag)
                    link.turn()
                except AMQPError as error:
                    if link is not None:
                        link.close()
                    link = None
                    if isinstance(error, ChannelClosedByBroker) and error.reply_code in (403, 404):
                        raise Refused(f"the broker refused: {error.reply_text}") from error
                    if time.monotonic() > deadline:
                        raise PushfleetError(f"the broker can't be reached: {error!r}") from error
                    time.sleep(next(pauses))
        finally:
            if link is not None:
                link.close()

    # The outbox

    def enqueue(self, tx: Any, **push: Unpack[Push]) -> str:
        """Stores a request in the caller's transaction, in the table of `create_outbox`. Returns its id; a relay publishes it."""
        sent = _make(self.app, push)
        _execute(tx, "INSERT INTO pushfleet_outbox (id, app, lane, sent_at, headers, body) VALUES (?, ?, ?, ?, ?, ?)",
                 (sent.id, sent.app, sent.lane, sent.timestamp, json.dumps(sent.headers), sent.body))
        return sent.id

    def relay(self, connect: Callable[[], Any], poll: Optional[float] = 1) -> int:
        """Publishes the outbox in its order, and deletes what the broker has confirmed. connect: opens a database connection.

        Looks again every `poll` seconds and doesn't end; with `poll=None` it ends when the outbox is empty, and returns the number of
        requests. A relay that is lost between confirm and deletion leaves rows that are published again, under the same ids.
        """
        count = 0
        with closing(connect()) as database:
            while True:
                moved = 0
                try:
                    moved = self._relay(database)
                except Unconfirmed as error:
                    if poll is None:
                        raise
                    log.warning("the outbox waits: %s", error)
                count += moved
                if moved == 0:
                    if poll is None or self._is_closed:
                        return count
                    time.sleep(poll)

    def _relay(self, database: Any) -> int:
        # Relays beside each other share the rows, except on SQLite, which has no locks for rows.
        locks = "" if _mark(database) == "?" else " FOR UPDATE SKIP LOCKED"
        problem: Optional[PushfleetError] = None
        try:
            rows = _execute(database, "SELECT seq, id, app, lane, sent_at, headers, body FROM pushfleet_outbox"
                            f" ORDER BY seq LIMIT {WINDOW}{locks}").fetchall()
            requests = [Sent(row[1], row[2], row[3], row[4], json.loads(row[5]), row[6]) for row in rows]
            try:
                self.send_many(requests)
            except PushfleetError as error:
                problem = error
            moved = [row[0] for row, sent in zip(rows, requests) if problem is None or sent not in problem.pending]
            for seq in moved:
                _execute(database, "DELETE FROM pushfleet_outbox WHERE seq = ?", (seq,))
            database.commit()
        except BaseException:
            database.rollback()
            raise
        if problem is not None:
            raise problem
        return len(moved)

def create_outbox(tx: Any) -> None:
    """Creates the table of the outbox, unless it exists. tx: a DB-API connection to SQLite or PostgreSQL."""
    number = "INTEGER PRIMARY KEY AUTOINCREMENT" if _mark(tx) == "?" else "BIGSERIAL PRIMARY KEY"
    _execute(tx, f"CREATE TABLE IF NOT EXISTS pushfleet_outbox (seq {number}, id TEXT NOT NULL UNIQUE, app TEXT NOT NULL,"
             " lane TEXT NOT NULL, sent_at BIGINT NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL)")

def _mark(tx: Any) -> str:
    """The placeholder of the driver's paramstyle."""
    for base in type(tx).__mro__:
        style = getattr(sys.modules.get(base.__module__.partition(".")[0]), "paramstyle", None)
        if style in ("qmark", "format", "pyformat"):
            return "?" if style == "qmark" else "%s"
    raise TypeError("tx: expected a DB-API connection, of sqlite3 or psycopg2 for example")

def _execute(tx: Any, sql: str, values: Sequence[Any] = ()) -> Any:
    sql = sql.replace("?", _mark(tx))
    cursor = tx.cursor()
    cursor.execute(sql, values)
    return cursor

def _decoded(body: bytes, queue: Any) -> Dict[str, Any]:
    try:
        return json.loads(body)
    except ValueError as error:
        raise PushfleetError(f"{queue}: a message isn't JSON: {error}") from error

class FakePushfleet(Pushfleet):
    """For unit tests: checks arguments and records requests, without a broker.

    sent: the requests. script: what the next requests end with, one entry each: a result; an OutcomeUnknown, which `outcome`
    raises; another PushfleetError, which `send` raises. Without an entry, a request succeeds. result_events and feedback_events:
    what the iterators give; an event stays until the loop asks for the next one.
    """

    def __init__(self, app: str) -> None:
        super().__init__("amqp://", app)
        self.sent: List[Sent] = []
        self.script: Deque[Union[Result, PushfleetError]] = deque()
        self.result_events: Deque[Result] = deque()
        self.feedback_events: Deque[Feedback] = deque()
        self._outcomes: Dict[str, Union[Result, PushfleetError]] = {}

    def _deliver(self, waiting: List[Sent], rest: List[Sent]) -> None:
        for index, sent in enumerate(waiting):
            entry = self.script.popleft() if self.script else self._success(sent)
            if isinstance(entry, PushfleetError) and not isinstance(entry, OutcomeUnknown):
                entry.pending = waiting[index:] + rest
                raise entry
            self.sent.append(sent)
            self._outcomes[sent.id] = entry

    def _success(self, sent: Sent) -> Result:
        targets = sent.request.get("registration_ids", [""])
        return {"message_id": sent.id, "app": sent.app, "success": len(targets), "failure": 0, "canonical_ids": 0,
                "results": [{"message_id": f"fake-{index}"} for index in range(len(targets))]}

    def _outcome(self, sent: Sent, timeout: float) -> Result:
        entry = self._outcomes[sent.id]
        if isinstance(entry, PushfleetError):
            raise entry
        return entry

    def _events(self, queue: str, idle: Optional[float]) -> Iterator[Dict[str, Any]]:
        events = self.result_events if queue.endswith(".results") else self.feedback_events
        while events:
            yield events[0]
            events.popleft()
