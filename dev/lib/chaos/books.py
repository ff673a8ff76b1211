"""Checks the outcomes of all requests. No I/O, no clock.

An id is a request and a device's token. Each accepted id (confirmed to the producer) must have exactly one end: delivered, gone,
suspect, dead or expired. If a worker died or lost its connection before an answer or a confirm, a push may be sent twice, reported
twice, or end in two ways. These cases are counted and compared with the largest possible number in flight.
"""

import collections
import json

# Feedback that comes with a dead letter, because a wrong setting may be the cause.
SUSPECT = {"InvalidRegistration", "MismatchSenderId"}


class Bound:
    """The most that was in flight at all losses of workers: requests of the lanes, devices of broadcasts, pushes of both."""

    def __init__(self, requests=0, devices=0, longest=1):
        self.requests, self.devices, self.pushes = requests, devices, requests * longest + devices


class Outcomes:
    """The outcomes at rest.

    - delivered: (request, token, time) of every push that a provider accepted
    - feedback, dead, results: messages as {"id", "body", "headers"}
    - resolve: returns the token of a registration or browser named in a dead letter
    - left: messages still in a lane, by queue
    - campaigns: states of broadcasts by request
    - violations: violations of a provider's rules
    """

    def __init__(self, delivered=(), feedback=(), dead=(), results=(), left=None, campaigns=None, violations=(),
                 resolve=lambda target: None):
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

    # Outcomes by id

    def _read_feedback(self, messages):
        self.feedback = collections.defaultdict(set)
        for message in messages:
            event = json.loads(message["body"])
            self.feedback[event["message_id"], event["token"]].add(event["event"])

    def _read_dead(self, outcomes):
        self.dead = set()
        # Requests that failed as a whole, and those that the broker gave up, which have no result.
        self.dead_whole, self.given_up, self.dead_pages = set(), set(), set()
        for letter in outcomes.dead:
            request, headers = self.requests.get(letter["id"]), letter["headers"]
            if "x-push-error" not in headers:
                self.given_up.add(letter["id"])
            if "x-push-page" in headers:
                self.dead_pages.add(letter["id"])
                continue
            target = json.loads(letter["body"]).get("to") or ""
            token = outcomes.resolve(target) if target.startswith(("pf1r~", "webpush:")) else target.partition(":")[2]
            if request and token and any(device.token == token for device in request.devices):
                self.dead.add((letter["id"], token))
            else:
                self.dead_whole.add(letter["id"])

    def _read_results(self, messages):
        self.results = collections.defaultdict(list)
        for message in messages:
            self.results[message["id"]].append(json.loads(message["body"]))

    # Checks

    def _end(self, request, device):
        """Finds the end of an id. Without one it is lost."""
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
                # The worker was lost between feedback and dead letter, and the redelivered request had expired.
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
        # After a broadcast found a device gone, the registry leaves it out of the next ones.
        elif request.kind != "topic" or device.nature != "gone":
            self.lost.append(key)

    def _is_said_to_be_expired(self, request, device):
        return request.kind != "topic" and any(
            said.get("error") == "Expired" for result in self.results.get(request.id, ())
            for other, said in zip(request.devices, result.get("results", ())) if other is device)

    def _check_results(self):
        """Each request has one result, which agrees with the providers' answers."""
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
            # The result counts the devices that were sent to: all that aren't gone, and perhaps some that are.
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
        """Counts pushes that a provider accepted more than once. Requests that the producer repeated are not counted."""
        # The times of the earlier and the later push.
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

    # Result

    @property
    def trouble(self):
        """The violations: a text and the ids that show it."""
        found = [("lost", self.lost), ("left in a queue", sorted(self.left.items())), ("without a result", self.without_result),
                 ("a wrong result", self.lies), ("feedback without its dead letter", self.half),
                 ("an unfinished broadcast", self.unfinished), ("a push without a request", self.strangers),
                 ("a broken rule of a provider", self.violations)]
        for words, what, most in (
                ("doubled pushes of requests", sorted(self.doubled_requests), self.bound.requests),
                ("doubled pushes of broadcasts", self.doubled_devices, self.bound.devices),
                ("doubled results", [name for name in self.doubled_results if self.requests[name].attempts == 1], self.bound.requests),
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
    """The number of doubled pushes that each fault caused, by its place in the list. The cause is the latest fault that may double
    pushes and was active between the two pushes. Faults are (begin, end, may double). -1 counts pushes without a cause."""
    counts = collections.Counter()
    for before, again in doubled_pushes:
        there = [(may_double, begin, place) for place, (begin, end, may_double) in enumerate(faults) if begin <= again and end >= before]
        counts[max(there)[2] if there else -1] += 1
    return counts
