"""Tests of the Python client with a real broker, database and worker, which dev/test-clients starts."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import typing
import unittest
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from unittest import mock

import pika
import psycopg2
from pika.exceptions import AMQPConnectionError, AMQPError

import pushfleet
from pushfleet import (APNs, Channel, Condition, Everyone, FCM, FCMTopic, FakePushfleet, Group, Installation, OutcomeUnknown, Pushfleet,
                       PushfleetError, Refused, Registration, Topic, Unconfirmed, User, WebPush, create_outbox)

AMQP, APP = os.environ["AMQP_URL"], "com.example.app"
ROOT = Path(__file__).resolve().parents[2]
PHONE, DEAD = APNs("ab" * 32), APNs("de" * 32)


def journal(platform, word):
    """The pushes that the provider got with this word in their payload."""
    lines = Path(os.environ["JOURNALS"], f"{platform}.ndjson").read_text().splitlines()
    return [line for line in lines if word in line]


def suppressed():
    """The number of copies that the worker has recognised."""
    text = urllib.request.urlopen(os.environ["METRICS"]).read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("pushfleet_duplicates_suppressed_total"))


def channel(test):
    connection = pika.BlockingConnection(pika.URLParameters(AMQP))
    test.addCleanup(connection.close)
    return connection.channel()


def proxy(test):
    """A URL of the broker, and an event: while it is cleared, the broker seems silent."""
    passes, broker = threading.Event(), urllib.parse.urlsplit(AMQP)
    passes.set()
    server = socket.create_server(("127.0.0.1", 0))
    test.addCleanup(server.close)
    test.addCleanup(passes.set)

    def copy(source, target):
        with source, target, contextlib.suppress(OSError):
            while data := source.recv(65536):
                passes.wait()
                target.sendall(data)

    def accept():
        while True:
            pair = [server.accept()[0], socket.create_connection((broker.hostname, broker.port))]
            for each in (pair, pair[::-1]):
                threading.Thread(target=copy, args=each, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return urllib.parse.urlunsplit(broker._replace(netloc=f"guest:guest@127.0.0.1:{server.getsockname()[1]}")), passes


class FleetTests(unittest.TestCase):
    """With a fleet that delivers."""

    def setUp(self):
        self.push = Pushfleet(AMQP, app=APP)
        self.addCleanup(self.push.close)
        self.word = uuid.uuid4().hex

    def test_a_push_to_each_kind_of_device_reaches_it(self):
        for to, platform in [(PHONE, "apns"), (User("anna"), "apns"), (FCM("phone:1"), "fcm")]:
            word = uuid.uuid4().hex
            outcome = self.push.send(to=to, title="Goal!", body=word, key="goal-77", lane="high", ttl=600).outcome(timeout=30)
            self.assertEqual((outcome["success"], outcome["failure"]), (1, 0))
            self.assertEqual(len(journal(platform, word)), 1)

    def test_a_list_has_a_result_for_each_target_in_order(self):
        outcome = self.push.send(to=[PHONE, DEAD], title=self.word).outcome()
        self.assertIn("message_id", outcome["results"][0])
        self.assertEqual(outcome["results"][1]["error"], "NotRegistered")

    def test_a_refused_request_has_an_outcome_with_the_reason(self):
        sent = self.push.send(to=PHONE, title="x" * 3000)
        self.assertEqual(sent.outcome()["results"][0]["error"], "MessageTooBig")
        sent = self.push.send(to=PHONE, title="x", sender="nobody")
        self.assertTrue(sent.outcome()["results"][0]["reason"])

    def test_an_outcome_in_a_queue_of_ones_own_survives_the_connection(self):
        queue = f"replies.{self.word}"
        channel(self).queue_declare(queue, durable=True)
        with Pushfleet(AMQP, app=APP, replies=queue) as push:
            sent = push.send(to=PHONE, title=self.word)
            push._disconnect(AMQPError("lost"), [])
            self.assertEqual(sent.outcome()["success"], 1)

    def test_feedback_names_a_dead_token_and_stays_until_the_body_has_succeeded(self):
        sent = self.push.send(to=DEAD, title=self.word)
        with self.assertRaises(KeyError):
            for event in self.push.feedback(idle=10):
                if event["message_id"] == sent.id:
                    raise KeyError("not yet handled")
        again = [event for event in self.push.feedback(idle=1) if event["message_id"] == sent.id]
        self.assertEqual([(event["event"], "apns:" + event["token"]) for event in again], [("NotRegistered", DEAD.text)])
        self.assertEqual([event for event in self.push.feedback(idle=0.3) if event["message_id"] == sent.id], [])

    def test_nothing_is_lost_when_the_broker_restarts_in_the_middle_of_send_many(self):
        restart = subprocess.Popen([os.environ["RESTART"]], stdout=subprocess.DEVNULL)
        sent = []
        with self.assertLogs("pushfleet", "WARNING") as logs:
            while restart.poll() is None or not sent:
                pushes = [{"to": PHONE, "title": "x", "data": {"n": f"{self.word}-{len(sent) + n}."}} for n in range(1000)]
                ids = [request.id for request in self.push.send_many(pushes)]
                self.assertEqual(len(set(ids)), 1000)
                sent += ids
        self.assertEqual(restart.returncode, 0)
        self.assertIn("sent again under the same ids: ", logs.output[0])
        missing = set(sent)
        for result in self.push.results(idle=10):
            missing.discard(result["message_id"])
            if not missing:
                break
        self.assertEqual(missing, set())
        pushed = {json.loads(line)["payload"]["n"] for line in journal("apns", self.word)}
        self.assertEqual(pushed, {f"{self.word}-{n}." for n in range(len(sent))})


class BrokerTests(unittest.TestCase):
    """With a broker that doesn't accept requests: an exchange of another prefix."""

    def setUp(self):
        self.prefix = f"other-{uuid.uuid4().hex}"
        self.channel = channel(self)
        self.push = Pushfleet(AMQP, app=APP, prefix=self.prefix, timeout=1)
        self.addCleanup(self.push.close)

    def declare(self, **arguments):
        self.channel.exchange_declare(f"{self.prefix}.send", "direct")
        self.channel.queue_declare("", exclusive=True, arguments=arguments)
        self.channel.queue_bind("", f"{self.prefix}.send", "normal")

    def test_an_outcome_that_has_not_come_or_cannot_come_is_unknown(self):
        self.declare()
        sent = self.push.send(to=PHONE, title="x")
        with self.assertRaisesRegex(OutcomeUnknown, "may still come"):
            sent.outcome(timeout=0.1)
        self.push._disconnect(AMQPError("lost"), [])
        with self.assertRaisesRegex(OutcomeUnknown, "connection"):
            sent.outcome()

    def test_a_returned_request_is_refused(self):
        self.channel.exchange_declare(f"{self.prefix}.send", "direct")
        with self.assertRaisesRegex(Refused, "no queue accepts"):
            self.push.send(to=PHONE, title="x")

    def test_what_the_broker_said_about_an_earlier_copy_does_not_count(self):
        self.channel.exchange_declare(f"{self.prefix}.send", "direct")
        with self.assertRaises(Refused) as caught:
            self.push.send(to=PHONE, title="x")
        self.declare()
        lost = [AMQPConnectionError("lost"), mock.DEFAULT]
        with mock.patch.object(self.push, "_connect", wraps=self.push._connect, side_effect=lost):
            sent = self.push.send_many(caught.exception.pending)
        self.push.close()
        with self.assertRaises(Unconfirmed) as caught:
            self.push.send_many(sent)
        self.assertEqual(caught.exception.pending, sent)

    def test_a_last_attempt_that_is_too_short_leaves_the_connection_to_earlier_requests(self):
        def connect_late(deadline):
            time.sleep(1.5)
            return link

        self.declare()
        url, passes = proxy(self)
        push = Pushfleet(url, app=APP, prefix=self.prefix, timeout=2)
        self.addCleanup(push.close)
        first, link = push.send(to=PHONE, title="x"), push._current
        passes.clear()
        with mock.patch.object(push, "_connect", connect_late), self.assertRaisesRegex(Unconfirmed, "does not confirm") as caught:
            push.send(to=PHONE, title="y")
        passes.set()
        push.send_many(caught.exception.pending)
        with self.assertRaisesRegex(OutcomeUnknown, "may still come"):
            first.outcome(timeout=0.1)

    def test_a_missing_exchange_is_refused(self):
        with self.assertRaisesRegex(Refused, f"no exchange '{self.prefix}.send'"):
            self.push.send(to=PHONE, title="x")

    def test_a_request_that_a_full_queue_refuses_is_sent_again_under_its_id(self):
        self.declare(**{"x-max-length": 1, "x-overflow": "reject-publish"})
        first = self.push.send(to=PHONE, title="x")
        with self.assertRaisesRegex(Unconfirmed, "queue may be full") as caught:
            self.push.send_many([{"to": PHONE, "title": "y"}, {"to": PHONE, "title": "z"}])
        self.assertEqual([sent.request["notification"]["title"] for sent in caught.exception.pending], ["y", "z"])
        # A retry gets through as soon as there is room.
        again, accepted = caught.exception.pending[0], []
        patient = Pushfleet(AMQP, APP, prefix=self.prefix)
        self.addCleanup(patient.close)
        thread = threading.Thread(target=lambda: accepted.extend(patient.send_many([again])))
        thread.start()
        ids = [next(self.channel.consume("", auto_ack=True))[1].message_id for _ in range(2)]
        thread.join()
        self.assertEqual(ids, [first.id, again.id])
        self.assertEqual(accepted, [again])

    def test_a_broker_that_is_not_there_leaves_the_request_unconfirmed(self):
        push = Pushfleet("amqp://127.0.0.1:1/", app=APP, timeout=0.3)
        with self.assertRaises(Unconfirmed) as caught:
            push.send(to=PHONE, title="x", id="mine")
        self.assertEqual([sent.id for sent in caught.exception.pending], ["mine"])
        with self.assertRaisesRegex(OutcomeUnknown, "connection"):
            caught.exception.pending[0].outcome()
        with self.assertRaisesRegex(PushfleetError, "can't be reached"):
            next(push.feedback())

    def test_an_error_says_why_there_is_no_connection(self):
        with self.assertRaisesRegex(Unconfirmed, "amqps: TLS failed"):
            Pushfleet(AMQP.replace("amqp://", "amqps://"), app=APP, timeout=1).send(to=PHONE, title="x")
        with self.assertRaisesRegex(ValueError, "^amqp: expected a URL"):
            Pushfleet(AMQP.replace("amqp://", "http://"), app=APP)

    def test_a_broker_that_does_not_answer_leaves_the_request_unconfirmed(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            push = Pushfleet(f"amqp://127.0.0.1:{silent.getsockname()[1]}/", app=APP, timeout=0.3)
            with self.assertRaisesRegex(Unconfirmed, "does not answer") as caught:
                push.send(to=PHONE, title="x", id="mine")
            self.assertEqual([sent.id for sent in caught.exception.pending], ["mine"])
            with self.assertRaisesRegex(PushfleetError, "can't be reached"):
                next(push.feedback())
            files = len(os.listdir("/proc/self/fd"))
            with self.assertRaises(Unconfirmed):
                push.send(to=PHONE, title="x")
            self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_a_broker_that_falls_silent_leaves_the_request_unconfirmed_within_the_timeout(self):
        self.declare()
        url, passes = proxy(self)
        replies = self.channel.queue_declare("", arguments={"x-expires": 60000}).method.queue
        push = Pushfleet(url, app=APP, prefix=self.prefix, replies=replies, timeout=4)
        sent = push.send(to=PHONE, title="x")
        passes.clear()
        begin = time.monotonic()
        with self.assertRaises(Unconfirmed):
            push.send(to=PHONE, title="x")
        self.assertLess(time.monotonic() - begin, 5)
        begin = time.monotonic()
        with self.assertRaises(OutcomeUnknown):
            sent.outcome(timeout=0.5)
        self.assertLess(time.monotonic() - begin, 2)

    def test_after_close_nothing_is_sent_or_read(self):
        self.declare()
        queue, replies = (self.channel.queue_declare(f"{name}.{self.prefix}", arguments={"x-expires": 60000}).method.queue
                          for name in ("events", "replies"))
        for n in range(3):
            self.channel.basic_publish("", queue, json.dumps({"n": n}))
        push = Pushfleet(AMQP, app=APP, prefix=self.prefix, replies=replies)
        outbox = sqlite3.connect(":memory:")
        create_outbox(outbox)
        sent, seen = push.send(to=PHONE, title="x"), []
        for event in push.feedback(queue, idle=1):
            seen.append(event["n"])
            push.close()
        self.assertEqual(len(seen), 1)
        with self.assertRaisesRegex(Unconfirmed, "^not confirmed: the client is closed$") as caught:
            push.send(to=PHONE, title="x", id="mine")
        self.assertEqual([sent.id for sent in caught.exception.pending], ["mine"])
        with self.assertRaises(OutcomeUnknown):
            sent.outcome()
        self.assertEqual(list(push.results()), [])
        self.assertEqual(push.relay(lambda: outbox), 0)

    def test_an_event_is_acknowledged_when_the_loop_asks_for_the_next_one(self):
        queue = self.channel.queue_declare("", arguments={"x-expires": 60000}).method.queue
        for n in range(4):
            self.channel.basic_publish("", queue, json.dumps({"n": n}))
        program = (
            "import os, pushfleet, signal\n"
            f"for event in pushfleet.Pushfleet({AMQP!r}, {APP!r}).feedback({queue!r}):\n"
            "    if event['n'] == 2: os.kill(os.getpid(), signal.SIGKILL)\n")
        killed = subprocess.run([sys.executable, "-B", "-c", program], cwd=Path(__file__).parent)
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.assertEqual([event["n"] for event in self.push.feedback(queue, idle=1)], [2, 3])

    def test_a_slow_loop_keeps_its_connection(self):
        queue = self.channel.queue_declare("", arguments={"x-expires": 60000}).method.queue
        for n in range(8):
            self.channel.basic_publish("", queue, json.dumps({"n": n}))
        seen = []
        for event in Pushfleet(f"{AMQP}?heartbeat=1", app=APP).feedback(queue, idle=1):
            seen.append(event["n"])
            if len(seen) > 8:
                break
            time.sleep(0.6)
        self.assertEqual(seen, list(range(8)))

    def test_a_loop_without_events_outlasts_the_loss_of_its_connection(self):
        def lose():
            self.channel.queue_delete(queue)
            self.channel.queue_declare(queue)
            self.channel.basic_publish("", queue, '{"n": 1}')

        queue = self.channel.queue_declare(f"events.{self.prefix}", arguments={"x-expires": 60000}).method.queue
        push = Pushfleet(AMQP, app=APP, timeout=0.5)
        thread = threading.Timer(1, lose)
        thread.start()
        self.assertEqual([event["n"] for event in push.feedback(queue, idle=3)], [1])
        thread.join()
        self.channel.queue_delete(queue)

    def test_a_missing_queue_is_refused(self):
        with self.assertRaisesRegex(Refused, "no queue"):
            next(self.push.results())


class OutboxTests(unittest.TestCase):
    def setUp(self):
        self.push = Pushfleet(AMQP, app=APP)
        self.addCleanup(self.push.close)
        self.word = uuid.uuid4().hex
        self.file = f"{os.environ['JOURNALS']}/{self.word}.db"
        postgres = psycopg2.connect(os.environ["POSTGRES"])
        self.addCleanup(postgres.close)
        postgres.cursor().execute(f'CREATE SCHEMA "{self.word}"')
        postgres.commit()
        self.databases = {
            "sqlite": lambda: sqlite3.connect(self.file),
            "postgres": lambda: psycopg2.connect(os.environ["POSTGRES"], options=f"-c search_path={self.word}"),
        }

    def rows(self, connect):
        database = connect()
        cursor = database.cursor()
        cursor.execute("SELECT id FROM pushfleet_outbox ORDER BY seq")
        rows = [row[0] for row in cursor.fetchall()]
        database.close()
        return rows

    def await_results(self, ids):
        missing = set(ids)
        for result in self.push.results(idle=10):
            missing.discard(result["message_id"])
            if not missing:
                return
        self.fail(f"no result of {missing}")

    def test_what_is_committed_is_sent_in_order_and_what_is_rolled_back_is_not(self):
        for name, connect in self.databases.items():
            with self.subTest(name):
                tx = connect()
                create_outbox(tx)
                create_outbox(tx)
                tx.commit()
                kept = [self.push.enqueue(tx, to=PHONE, title=f"{self.word} {name} {n} 100%?") for n in range(3)]
                tx.commit()
                self.push.enqueue(tx, to=PHONE, title=f"{self.word} rolled back")
                tx.rollback()
                tx.close()
                self.assertEqual(self.rows(connect), kept)
                self.assertEqual(self.push.relay(connect, poll=None), 3)
                self.assertEqual(self.rows(connect), [])
                self.await_results(kept)
                titles = [json.loads(line)["payload"]["aps"]["alert"]["title"] for line in journal("apns", f"{self.word} {name}")]
                self.assertEqual(titles, [f"{self.word} {name} {n} 100%?" for n in range(3)])
                self.assertEqual(journal("apns", "rolled back"), [])

    def test_a_relay_that_is_killed_between_confirm_and_deletion_causes_no_second_push(self):
        for name, connect in self.databases.items():
            with self.subTest(name):
                tx = connect()
                create_outbox(tx)
                id = self.push.enqueue(tx, to=PHONE, title=f"{self.word} {name}")
                tx.commit()
                tx.close()
                program = (
                    "import os, signal, sys, pushfleet, psycopg2, sqlite3\n"
                    "execute = pushfleet._execute\n"
                    "def stop(tx, sql, values=()):\n"
                    "    if sql.startswith('DELETE'): os.kill(os.getpid(), signal.SIGKILL)\n"
                    "    return execute(tx, sql, values)\n"
                    "pushfleet._execute = stop\n"
                    "connect = (lambda: sqlite3.connect(sys.argv[2])) if sys.argv[1] == 'sqlite' else (\n"
                    "    lambda: psycopg2.connect(os.environ['POSTGRES'], options='-c search_path=' + sys.argv[3]))\n"
                    f"pushfleet.Pushfleet({AMQP!r}, {APP!r}).relay(connect, poll=None)\n")
                killed = subprocess.run([sys.executable, "-B", "-c", program, name, self.file, self.word],
                                        cwd=Path(__file__).parent)
                self.assertEqual(killed.returncode, -signal.SIGKILL)
                self.assertEqual(self.rows(connect), [id])
                before = suppressed()
                self.await_results([id])
                self.assertEqual(self.push.relay(connect, poll=None), 1)
                # A lane keeps its order: when this push has its outcome, the copy before it is decided.
                self.push.send(to=PHONE, title="later").outcome()
                self.assertEqual(len(journal("apns", f"{self.word} {name}")), 1)
                # The worker publishes its figures a little later.
                deadline = time.monotonic() + 30
                while suppressed() == before:
                    self.assertLess(time.monotonic(), deadline)

    def test_relays_beside_each_other_send_every_request(self):
        for name, connect in self.databases.items():
            with self.subTest(name):
                tx = connect()
                create_outbox(tx)
                ids = [self.push.enqueue(tx, to=PHONE, title=f"{self.word} {name} {n}.") for n in range(1200)]
                tx.commit()
                tx.close()
                counts = []

                def relay(connect=connect, counts=counts):
                    with Pushfleet(AMQP, APP) as push:
                        counts.append(push.relay(connect, poll=None))

                threads = [threading.Thread(target=relay) for _ in range(3)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(len(counts), 3)
                self.assertEqual(self.rows(connect), [])
                # Relays of PostgreSQL share the rows. Those of SQLite publish copies, which the worker recognises.
                self.assertEqual(sum(counts) == 1200, name == "postgres" or sum(counts) == 1200)
                self.await_results(ids)
                self.assertEqual(len(journal("apns", f"{self.word} {name}")), 1200)

    def test_a_connection_that_is_none_is_refused(self):
        with self.assertRaisesRegex(TypeError, "tx: expected a DB-API connection"):
            self.push.enqueue(object(), to=PHONE, title="x")


class ArgumentTests(unittest.TestCase):
    def test_a_wrong_argument_is_refused_by_its_name(self):
        push = Pushfleet("amqp://127.0.0.1:1/", app=APP)
        for error, words, arguments in [
            (TypeError, "^to: expected a target", {"to": "ab" * 32}),
            (TypeError, "^to: expected a target", {"title": "x"}),
            (ValueError, "^to: a list has 1 to 1000", {"to": []}),
            (ValueError, "^to: a list has 1 to 1000", {"to": [Everyone()]}),
            (TypeError, "^tilte: unknown name", {"to": PHONE, "tilte": "x"}),
            (TypeError, "^notification.bodi: unknown name", {"to": PHONE, "notification": {"bodi": "x"}}),
            (TypeError, "^notification.badge: expected ", {"to": PHONE, "notification": {"badge": 1.5}}),
            (ValueError, "^title: given twice", {"to": PHONE, "title": "x", "notification": {"title": "y"}}),
            (TypeError, "^ttl: expected int, not bool", {"to": PHONE, "ttl": True}),
            (ValueError, "^ttl: expected 0 to 2419200", {"to": PHONE, "ttl": -1}),
            (TypeError, "^lane: expected .*'high', 'normal'", {"to": PHONE, "lane": "low"}),
            (ValueError, "^key: expected 1 to 1024 bytes", {"to": PHONE, "key": "é" * 513}),
            (ValueError, "^id: expected 1 to 255 bytes", {"to": PHONE, "id": "a\nb"}),
            (ValueError, "^data: the name 'from' is reserved", {"to": PHONE, "data": {"from": "x"}}),
            (ValueError, "^data: ", {"to": PHONE, "data": {"x": float("nan")}}),
            (ValueError, "^data: ", {"to": PHONE, "data": {"x": [object()]}}),
            (ValueError, "^title: ", {"to": PHONE, "title": "\ud800"}),
            (ValueError, "^sender: ", {"to": PHONE, "sender": "\ud800"}),
            (TypeError, "^notification.title_loc_args: expected ", {"to": PHONE, "notification": {"title_loc_args": [1]}}),
            (TypeError, "^notification: expected ", {"to": PHONE, "notification": "x"}),
            (TypeError, "^notification.sound: expected ", {"to": PHONE, "notification": {"sound": ["x"]}}),
        ]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                push.send_many([{"to": PHONE, "title": "good"}, arguments])

    def test_a_malformed_target_is_refused_without_showing_it(self):
        for kind, value in [(APNs, "abc"), (FCM, "a b"), (FCM, "fid:x"), (Registration, "pf1r~x"), (Group, "pf1g~"), (User, ""), (User, "é" * 128), (User, "\ud800"),
                            (Topic, "a b"), (Condition, ""), (Installation, "secret"), (Channel, " "), (FCMTopic, ""), (WebPush, {}),
                            (WebPush, {"endpoint": "https://secret", "keys": {}})]:
            with self.subTest(kind=kind, value=value), self.assertRaisesRegex(ValueError, f"^{kind.__name__}: expected ") as caught:
                kind(value)
            self.assertNotIn("secret", str(caught.exception))

    def test_types_agree_with_the_schema(self):
        schema = json.loads((ROOT / "docs/schema/send-request.schema.json").read_text())["$defs"]
        fields = {pushfleet._FIELDS.get(name, name) for name in pushfleet.Push.__annotations__}
        fields -= {"title", "body", "lane", "id", *pushfleet._HEADERS}
        self.assertEqual(fields | {"registration_ids", "condition", "notification_key"}, set(schema["gcm"]["properties"]))
        self.assertEqual(set(pushfleet.Notification.__annotations__), set(schema["notification"]["properties"]))
        subscription = {"endpoint": "https://push.example.com/1", "keys": {"p256dh": "BA", "auth": "AA"}}
        for target in [PHONE, FCM("a:b-c"), Installation("c" + "a" * 21), WebPush(subscription), Registration("pf1r~0" + "0" * 25),
                       Group("pf1g~0" + "0" * 25), User("anna"), User("a%41"), Topic("news"), FCMTopic("news"), Channel("aa=="), Everyone()]:
            self.assertRegex(target.text, schema["gcm"]["properties"]["to"]["pattern"])


class FakeTests(unittest.TestCase):
    def test_it_records_requests_and_plays_a_script(self):
        fake = FakePushfleet(app=APP)
        sent = fake.send(to=[PHONE, DEAD], title="x", key="goal-77", lane="high")
        self.assertEqual(fake.sent, [sent])
        self.assertEqual((sent.lane, sent.request["collapse_key"], sent.outcome()["success"]), ("high", "goal-77", 2))
        refused = {"success": 0, "failure": 1, "results": [{"error": "NotRegistered"}]}
        fake.script += [refused, OutcomeUnknown("late"), Unconfirmed("down")]
        self.assertEqual(fake.send(to=DEAD, title="x").outcome(), refused)
        with self.assertRaises(OutcomeUnknown):
            fake.send(to=PHONE, title="x").outcome()
        with self.assertRaises(Unconfirmed) as caught:
            fake.send(to=PHONE, title="x")
        self.assertEqual(fake.send_many(caught.exception.pending)[0].outcome()["success"], 1)
        self.assertEqual(len(fake.sent), 4)
        with self.assertRaises(TypeError):
            fake.send(to="anna")

    def test_it_gives_events_and_takes_the_outbox(self):
        fake = FakePushfleet(app=APP)
        fake.feedback_events += [{"event": "NotRegistered"}, {"event": "Stale"}]
        with self.assertRaises(KeyError):
            for _ in fake.feedback():
                raise KeyError
        self.assertEqual([event["event"] for event in fake.feedback()], ["NotRegistered", "Stale"])
        self.assertEqual(list(fake.results()), [])
        tx = sqlite3.connect(":memory:")
        create_outbox(tx)
        id = fake.enqueue(tx, to=User("anna"), title="x")
        tx.commit()
        fake.relay(lambda: tx, poll=None)
        self.assertEqual([sent.id for sent in fake.sent], [id])


if __name__ == "__main__":
    unittest.main()
