"""The books: sets of ids, and what must hold between them. No I/O, no clock.

An id is a request and a device's token. What was accepted (confirmed to the producer) must be in exactly one end each: delivered, gone,
suspect, dead or expired. Where a worker died, or was cut off, before it heard an answer or a confirm, the same push may go out twice,
be told twice, or end in two ways; how often is counted, and held against what can have been in flight.
"""

import collections
import json

# Feedback that comes with a dead letter, since a wrong setting may be the cause.
SUSPECT = {"InvalidRegistration", "MismatchSenderId"}


class Bound:
    """What can have been in flight whenever a worker died or was cut off: requests of the lanes, devices of broadcasts, pushes of both."""

    def __init__(self, requests=0, devices=0, longest=1):
        self.requests, self.devices, self.pushes = requests, devices, requests * longest + devices


class Outcomes:
    """What was found once everything was at rest.

    - delivered: (request, token, time) of every push that a provider took
    - feedback, dead, results: messages as {"id", "body", "headers"}
    - resolve: the token of a device that a dead letter names by its registration
    - left: messages still in a lane, by queue
    - campaigns: states of broadcasts by request
    - violations: what was done to a provider that no client must do
    """

    def __init__(self, delivered=(), feedback=(), dead=(), results=(), left=None, campaigns=None, violations=(),
                 resolve=lambda registration: None):
        self.delivered, self.feedback, self.dead, self.results, self.violations = delivered, feedback, dead, results, violations
        self.left, self.campaigns, self.resolve = left or {}, campaigns or {}, resolve


class Books:
    def __init__(self, requests, outcomes, bound):
        self.requests = {request.id: request for request in requests}
        self.accepted = [request for request in requests if request.is_accepted]
        self.bound = bound
        self.violations = list(outcomes.violations)
        self.left = {queue: count for queue, count in outcomes.left.items() if count}
        self.pushes = collections.defaultdict(list)
        for name, token, time in outcomes.delivered:
            self.pushes[name, token].append(time)
        self._read_feedback(outcomes.feedback)
        self._read_dead(outcomes)
        self._read_results(outcomes.results)
        self.ends = collections.Counter()
        self.lost, self.in_two, self.half = [], [], []
        for request in self.accepted:
            for device in request.devices:
                self._end(request, device)
        self._check_results()
        self._check_campaigns(outcomes.campaigns)
        self._count_doubles()
        self.strangers = sorted({name for name, _ in self.pushes if name not in self.requests})

    # What was found, by id

    def _read_feedback(self, messages):
        self.feedback = collections.defaultdict(set)
        for message in messages:
            event = json.loads(message["body"])
            self.feedback[event["message_id"], event["token"]].add(event["event"])

    def _read_dead(self, outcomes):
        self.dead = set()
        # Requests that ended as they came, and those that the broker gave up: without a worker's word, and so without a result.
        self.dead_whole, self.given_up, self.dead_pages = set(), set(), set()
        for letter in outcomes.dead:
            request, headers = self.requests.get(letter["id"]), letter["headers"]
            if "x-push-error" not in headers:
                self.given_up.add(letter["id"])
            if "x-push-page" in headers:
                self.dead_pages.add(letter["id"])
                continue
            target = json.loads(letter["body"]).get("to") or ""
            token = outcomes.resolve(target) if target.startswith("pf1r~") else target.partition(":")[2]
            if request and token and any(device.token == token for device in request.devices):
                self.dead.add((letter["id"], token))
            else:
                self.dead_whole.add(letter["id"])

    def _read_results(self, messages):
        self.results = collections.defaultdict(list)
        for message in messages:
            self.results[message["id"]].append(json.loads(message["body"]))

    # What must hold

    def _end(self, request, device):
        """In which way it ended: one, or it is lost."""
        key = request.id, device.token
        events = self.feedback.get(key, set())
        ends = set()
        if key in self.pushes:
            ends.add("delivered")
        if "NotRegistered" in events:
            ends.add("gone")
        if events & SUSPECT:
            ends.add("suspect")
            if key not in self.dead and request.id not in self.dead_whole:
                # Its worker was lost between the two, and it had expired when it came back.
                if self._is_said_to_be_expired(request, device):
                    ends.add("expired")
                else:
                    self.half.append(key)
        elif key in self.dead:
            ends.add("dead")
        elif self._is_said_to_be_expired(request, device):
            ends.add("expired")
        if not ends and (request.id in self.dead_whole or request.id in self.dead_pages):
            ends.add("dead")
        if len(ends) > 1:
            self.in_two.append(key)
        if ends:
            self.ends[min(ends)] += 1
        # Once a broadcast has found out that a device is gone, the registry leaves it out of the next.
        elif request.kind != "topic" or device.nature != "gone":
            self.lost.append(key)

    def _is_said_to_be_expired(self, request, device):
        return request.kind != "topic" and any(
            said.get("error") == "Expired" for result in self.results.get(request.id, ())
            for other, said in zip(request.devices, result.get("results", ())) if other is device)

    def _check_results(self):
        """One result each, and none that claims what no provider has said."""
        self.without_result, self.doubled_results, self.lies = [], [], []
        for request in self.accepted:
            results = self.results.get(request.id, [])
            if len(results) > 1:
                self.doubled_results.append(request.id)
            if not results and request.id not in self.given_up and request.id not in self.dead_pages:
                self.without_result.append(request.id)
            self.lies += [request.id for result in results if not self._is_true(request, result)]

    def _is_true(self, request, result):
        reached = [(request.id, device.token) in self.pushes for device in request.devices]
        if request.kind == "topic":
            # As many as were sent to: all that are not gone, and of those that are, who was asked.
            certain = sum(device.nature != "gone" for device in request.devices)
            return (result["success"] <= sum(reached) and certain <= result["success"] + result["failure"] <= len(request.devices))
        said = ["message_id" in one for one in result["results"]]
        return len(said) == len(reached) and result["success"] == sum(said) and all(
            was_reached or not is_said for was_reached, is_said in zip(reached, said))

    def _check_campaigns(self, campaigns):
        self.unfinished = sorted(
            request.id for request in self.accepted if request.kind == "topic" and request.id not in self.dead_pages
            and campaigns.get(request.id) != "completed")

    def _count_doubles(self):
        """What a provider took more than once; a request that the producer published again is expected to."""
        # When it was taken before, and when again.
        self.doubled_pushes = []
        self.doubled_requests, self.doubled_devices = set(), []
        for (name, token), times in self.pushes.items():
            times.sort()
            again = list(zip(times, times[1:]))
            self.doubled_pushes += again
            request = self.requests.get(name)
            if not again or request is None or request.attempts > 1:
                continue
            if request.kind == "topic":
                self.doubled_devices += [(name, token)] * len(again)
            else:
                self.doubled_requests.add(name)

    # The verdict

    @property
    def trouble(self):
        """What must not be: words, and the first ids that show it."""
        found = [("lost", self.lost), ("left in a queue", sorted(self.left.items())), ("without a result", self.without_result),
                 ("a result that isn't true", self.lies), ("feedback without its dead letter", self.half),
                 ("a broadcast that isn't completed", self.unfinished), ("a push of no request", self.strangers),
                 ("a provider's rule broken", self.violations)]
        for words, what, most in (
                ("pushes of a request doubled", sorted(self.doubled_requests), self.bound.requests),
                ("pushes of a broadcast doubled", self.doubled_devices, self.bound.devices),
                ("results doubled", [name for name in self.doubled_results if self.requests[name].attempts == 1], self.bound.requests),
                ("with two ends", self.in_two, self.bound.pushes)):
            if len(what) > most:
                found.append((f"{words}, more than the {most} that can have been in flight", what))
        return [(words, what) for words, what in found if what]

    @property
    def figures(self):
        return {
            "requests": len(self.accepted), "devices": sum(len(request.devices) for request in self.accepted),
            "broadcasts": sum(request.kind == "topic" for request in self.accepted), "pushes": sum(map(len, self.pushes.values())),
            "ends": dict(sorted(self.ends.items())), "lost": len(self.lost), "in_two_ends": len(self.in_two),
            "given_up_by_the_broker": len(self.given_up), "published_again": sum(r.attempts > 1 for r in self.accepted),
            "doubled_pushes": len(self.doubled_pushes), "doubled_requests": len(self.doubled_requests),
            "doubled_devices_of_broadcasts": len(self.doubled_devices), "doubled_results": len(self.doubled_results),
            "bound_requests": self.bound.requests, "bound_devices": self.bound.devices, "left": self.left}


def blame(doubled_pushes, faults):
    """How many doubled pushes each fault has to answer for, by its place in the list: of those that were there when the push went out
    again or since it went out before, the latest that can double one. Faults are (begin, end, may double); -1 counts what none answers
    for."""
    counts = collections.Counter()
    for before, again in doubled_pushes:
        there = [(may_double, begin, place) for place, (begin, end, may_double) in enumerate(faults) if begin <= again and end >= before]
        counts[max(there)[2] if there else -1] += 1
    return counts
