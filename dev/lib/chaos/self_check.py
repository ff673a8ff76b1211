"""Tests of the chaos test: checks, proxy and schedule must find every mistake put before them."""

import contextlib
import json
import pathlib
import socket
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from books import Books, Bound, Outcomes, blame  # noqa: E402
from cluster import Cluster  # noqa: E402
from devices import Browser, Device, Devices, endpoint_of  # noqa: E402
from faults import TRACKS  # noqa: E402
from nemesis import schedule  # noqa: E402
from process import Failure  # noqa: E402
from producer import Request  # noqa: E402
from proxy import Proxy  # noqa: E402


def device(nature="good"):
    """The first device with this nature."""
    return next(one for one in map(lambda number: Device("raw", number), range(200)) if one.nature == nature)


class Story:
    """One accepted request to a good device, one to each other kind, a list and a broadcast, with their correct outcomes."""

    def __init__(self):
        good, gone, suspect, refused = (device(nature) for nature in ("good", "gone", "suspect", "refused"))
        self.requests = [self.request("good", "single", [good]), self.request("gone", "single", [gone]),
                         self.request("suspect", "single", [suspect]), self.request("refused", "single", [refused]),
                         self.request("late", "single", [good]), self.request("list", "list", [good, gone]),
                         self.request("all", "topic", [good, gone])]
        self.delivered = [("good", good.token, 1), ("list", good.token, 2), ("all", good.token, 3)]
        self.feedback = [self.event("gone", gone, "NotRegistered"), self.event("suspect", suspect, "InvalidRegistration"),
                         self.event("list", gone, "NotRegistered")]
        self.dead = [self.letter("suspect", suspect.target), self.letter("refused", refused.target)]
        ok, error = {"message_id": "1"}, lambda code: {"error": code}
        self.results = [self.result("good", ok), self.result("gone", error("NotRegistered")),
                        self.result("suspect", error("InvalidRegistration")), self.result("refused", error("InvalidParameters")),
                        self.result("late", error("Expired")), self.result("list", ok, error("NotRegistered")),
                        self.message("all", {"success": 1, "failure": 0})]
        self.left, self.campaigns = {"send.normal": 0}, {"all": "completed"}
        self.violations = []

    @staticmethod
    def request(name, kind, devices):
        request = Request(name, kind, devices, "{}", "normal")
        request.attempts, request.is_accepted = 1, True
        return request

    @staticmethod
    def message(name, body, headers=None):
        return {"id": name, "body": json.dumps(body), "headers": headers or {}}

    def event(self, name, one, event):
        return self.message(name, {"message_id": name, "token": one.token, "event": event})

    def letter(self, name, target):
        return self.message(name, {"to": target}, {"x-push-error": "InvalidParameters"})

    def result(self, name, *entries):
        return self.message(name, {"message_id": name, "success": sum("message_id" in one for one in entries), "results": list(entries)})

    def of(self, messages, name):
        return next(index for index, message in enumerate(messages) if message["id"] == name)

    def books(self, bound=Bound()):
        return Books(self.requests, Outcomes(delivered=self.delivered, feedback=self.feedback, dead=self.dead, results=self.results,
                                             left=self.left, campaigns=self.campaigns, violations=self.violations), bound)


class BooksTests(unittest.TestCase):
    def setUp(self):
        self.story = Story()

    def found(self, bound=Bound()):
        return [words for words, _ in self.story.books(bound).trouble]

    def test_all_is_well(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.story.books().ends, {"delivered": 3, "gone": 2, "suspect": 1, "dead": 1, "expired": 1})

    def test_a_push_that_no_provider_has_seen_is_lost_and_its_result_a_lie(self):
        self.story.delivered.pop(0)
        self.assertEqual(self.found(), ["lost", "a wrong result"])

    def test_a_request_of_which_nothing_is_known_is_lost(self):
        self.story.delivered.pop(0)
        self.story.results.pop(0)
        books = self.story.books()
        self.assertEqual(books.lost, [("good", device().token)])
        self.assertEqual(books.without_result, ["good"])

    def test_a_request_that_was_never_accepted_is_not_missed(self):
        self.story.delivered.pop(0)
        self.story.results.pop(0)
        self.story.requests[0].is_accepted = False
        self.assertEqual(self.found(), [])

    def test_a_device_of_a_list_and_of_a_broadcast_is_lost_by_itself(self):
        for name in ("list", "all"):
            with self.subTest(name):
                story = Story()
                story.delivered = [one for one in story.delivered if one[0] != name]
                self.assertEqual(story.books().lost, [(name, device().token)])

    def test_a_gone_device_may_be_left_out_of_a_broadcast_and_of_nothing_else(self):
        self.story.feedback = []
        self.assertEqual({name for name, _ in self.story.books().lost}, {"gone", "list"})

    def test_a_doubled_push_is_counted_and_held_against_what_was_in_flight(self):
        self.story.delivered.append(self.story.delivered[0])
        self.assertEqual(self.story.books().doubled_pushes, [(1, 1)])
        self.assertEqual(self.found(), ["doubled pushes of requests, more than the 0 that can have been in flight"])
        self.assertEqual(self.found(Bound(requests=1)), [])

    def test_a_doubled_device_of_a_broadcast_is_held_against_the_pages_in_flight(self):
        self.story.delivered.append(self.story.delivered[2])
        self.assertEqual(self.found(Bound(requests=9)), ["doubled pushes of broadcasts, more than the 0 that can have been in flight"])
        self.assertEqual(self.found(Bound(devices=1)), [])

    def test_what_the_producer_published_again_may_be_delivered_again(self):
        self.story.requests[0].attempts = 2
        self.story.delivered.append(self.story.delivered[0])
        self.assertEqual(self.found(), [])

    def test_a_second_result_is_counted_and_held_to_be_true(self):
        self.story.results.append(self.story.results[0])
        self.assertEqual(self.story.books().doubled_results, ["good"])
        self.assertEqual(self.found(), ["doubled results, more than the 0 that can have been in flight"])
        self.assertEqual(self.found(Bound(requests=1)), [])
        self.story.results.append(self.story.result("late", {"message_id": "1"}))
        self.assertIn("a wrong result", self.found())

    def test_a_missing_result_is_found(self):
        self.story.results.pop(self.story.of(self.story.results, "refused"))
        self.assertEqual(self.found(), ["without a result"])

    def test_what_the_broker_gave_up_has_an_end_and_no_result(self):
        self.story.delivered.pop(0)
        self.story.results.pop(0)
        self.story.dead.append(self.story.message("good", {"to": device().target}, {"x-death": []}))
        self.assertEqual(self.found(), [])
        self.assertEqual(self.story.books().given_up, {"good"})

    def test_a_message_left_in_a_queue_is_found(self):
        self.story.left["retry.10s"] = 1
        self.assertEqual(self.story.books().trouble, [("left in a queue", [("retry.10s", 1)])])

    def test_two_ends_of_one_device_are_counted(self):
        self.story.dead.append(self.story.letter("good", device().target))
        self.assertEqual(self.story.books().in_two, [("good", device().token)])
        self.assertEqual(self.found(), ["with two ends, more than the 0 that can have been in flight"])
        self.assertEqual(self.found(Bound(devices=1)), [])

    def test_feedback_for_a_suspect_device_without_its_dead_letter_is_found(self):
        self.story.dead.pop(0)
        self.assertEqual(self.found(), ["feedback without its dead letter"])

    def test_a_suspect_device_whose_request_expired_before_its_dead_letter_has_two_ends(self):
        self.story.dead.pop(0)
        self.story.results[self.story.of(self.story.results, "suspect")] = self.story.result("suspect", {"error": "Expired"})
        self.assertEqual(self.found(Bound(devices=1)), [])
        self.assertEqual(len(self.story.books().in_two), 1)

    def test_a_broadcast_that_counts_wrongly_or_never_ends_is_found(self):
        self.story.results[-1] = self.story.message("all", {"success": 2, "failure": 0})
        self.story.campaigns = {"all": "running"}
        self.assertEqual(self.found(), ["a wrong result", "an unfinished broadcast"])

    def test_a_push_without_a_request_is_found(self):
        self.story.delivered.append(("unknown", device().token, 4))
        self.assertEqual(self.found(), ["a push without a request"])

    def test_a_violation_of_a_providers_rules_is_found(self):
        self.story.violations = ["the payload is not JSON"]
        self.assertEqual(self.found(), ["a broken rule of a provider"])

    def test_the_latest_active_fault_is_blamed_for_a_doubled_push(self):
        faults = [(0, 10, True), (20, 30, True), (25, 26, True), (27, 50, False)]
        self.assertEqual(blame([(5, 6), (5, 22), (28, 29), (28, 40), (11, 12)], faults), {0: 1, 1: 3, -1: 1})


class DevicesTests(unittest.TestCase):
    def test_a_browser_is_known_by_its_endpoint(self):
        browser = Browser(7)
        browser.subscribe({"endpoint": "https://localhost:1/up/subscription-7", "keys": {"p256dh": "x", "auth": "y"}})
        self.assertEqual(endpoint_of(browser.target), browser.token)

    def test_browsers_are_among_those_addressed_and_those_registered(self):
        devices = Devices(2, 4, 6)
        self.assertEqual(([one.platform for one in devices.raw].count("webpush"),
                          [one.platform for one in devices.members].count("webpush")), (4, 2))
        self.assertEqual(set(devices.script("webpush")), {"subscription-1", "subscription-2", "subscription-3", "subscription-4",
                                                          "subscription-5", "subscription-6"})


class ScheduleTests(unittest.TestCase):
    def test_it_is_a_function_of_the_seed(self):
        def planned(seed):
            return [f"{one.at} {one.fault}" for one in schedule(seed, 600)]
        self.assertEqual(planned(7), planned(7))
        self.assertNotEqual(planned(7), planned(8))

    def test_within_a_track_one_fault_ends_before_the_next_begins(self):
        for seed in range(50):
            for track in TRACKS:
                members = [one for one in schedule(seed, 600) if one.track == track]
                for one, following in zip(members, members[1:]):
                    self.assertLessEqual(one.at + one.fault.seconds, following.at)

    def test_every_kind_comes_in_ten_minutes(self):
        kinds = {type(one.fault).__name__ for one in schedule(3, 600)}
        self.assertEqual(kinds, {member.__name__ for members in TRACKS.values() for member in members})


class AlarmTests(unittest.TestCase):
    class Node:
        """A node of which only its state is known."""

        def __init__(self, is_paused=False, is_away=False, is_broken=False):
            self.is_paused, self.is_away, self.is_broken = is_paused, is_away, is_broken
            self.watermarks = []

        def control(self, command, share):
            if self.is_paused or self.is_broken:
                raise Failure(command)
            self.watermarks.append(share)

    def cluster(self, *nodes):
        cluster = Cluster.__new__(Cluster)
        cluster.nodes, cluster.alarmed = nodes, []
        return cluster

    def test_a_paused_node_gets_no_alarm(self):
        away, paused, node = self.Node(is_away=True), self.Node(is_paused=True), self.Node()
        cluster = self.cluster(away, paused, node)
        cluster.raise_alarm()
        self.assertEqual([one.watermarks for one in cluster.nodes], [[], [], ["0.0000001"]])
        cluster.clear_alarm()
        self.assertEqual((node.watermarks[1:], cluster.alarmed), (["0.4"], []))

    def test_a_node_that_pauses_forgets_its_alarm(self):
        cluster = self.cluster(node := self.Node())
        cluster.raise_alarm()
        node.is_paused = True
        cluster.clear_alarm()
        self.assertEqual((node.watermarks, cluster.alarmed), (["0.0000001"], []))

    def test_a_node_that_runs_and_refuses_fails_the_round(self):
        with self.assertRaises(Failure):
            self.cluster(self.Node(is_broken=True)).raise_alarm()


class ProxyTests(unittest.TestCase):
    """An upstream that echoes. Waits for expected events first, then checks that no others came."""

    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        threading.Thread(target=self.echo, daemon=True).start()
        self.link = Proxy().link("w1-echo", self.server.getsockname()[1])
        self.client = self.connect()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.link.port), 10)
        self.addCleanup(client.close)
        return client

    def echo(self):
        def serve(connection):
            with connection, contextlib.suppress(OSError):
                while piece := connection.recv(1024):
                    connection.sendall(piece)
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def talk(self, client):
        client.sendall(b"hello")
        return client.recv(5, socket.MSG_WAITALL)

    def test_what_goes_in_comes_out(self):
        self.assertEqual(self.talk(self.client), b"hello")

    def test_a_stalled_link_is_silent_and_then_delivers_what_was_under_way(self):
        self.assertEqual(self.talk(self.client), b"hello")
        self.link.stall()
        self.client.sendall(b"late!")
        self.client.settimeout(0.2)
        with self.assertRaises(socket.timeout):
            self.client.recv(5)
        self.client.settimeout(10)
        self.link.mend()
        self.assertEqual(self.client.recv(5, socket.MSG_WAITALL), b"late!")

    def test_a_reset_ends_what_is_there_and_takes_what_comes(self):
        self.assertEqual(self.talk(self.client), b"hello")
        self.link.reset()
        with self.assertRaises(ConnectionResetError):
            self.client.recv(1)
        self.assertEqual(self.talk(self.connect()), b"hello")

    def test_a_cut_link_takes_nobody_until_it_is_mended(self):
        self.assertEqual(self.talk(self.client), b"hello")
        self.link.cut()
        with self.assertRaises(ConnectionResetError):
            self.client.recv(1)
        with self.assertRaises(OSError):
            self.connect().recv(1) or self.fail("an orderly end is no reset")
        self.link.mend()
        self.assertEqual(self.talk(self.connect()), b"hello")


if __name__ == "__main__":
    unittest.main()
