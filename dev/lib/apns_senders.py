"""Runs one sender for APNs' binary interface from PyPI, changed only in its address and its obsolete TLS versions. One sender per
process, because they change each other's modules.

Usage: apns_senders.py CLIENT FOLDER GATEWAY-PORT FEEDBACK-PORT
FOLDER has sender.pem (certificate and key), sender.crt and sender.key, and apns.ndjson, the journal of the APNs simulator. Sends to three
devices and to one with a dead token, then a bad notification (short token or long payload) followed by a good one, then reads the feedback
service. Prints the results. Exits 1 if the sender got an unexpected answer, or if a device didn't get each push exactly once. The senders'
checks of the token length are turned off, because the gateway must find the error.
"""

import json
import ssl
import sys
import time

CLIENT, FOLDER, GATEWAY, FEEDBACK = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
HOST = "127.0.0.1"
# The first byte of a token identifies the client in the simulator's journal.
FIRST = {"pushjack": "a1", "apns-clerk": "a2", "apns-client": "a3", "apns-worker": "a4", "twisted-apns": "a5"}[CLIENT]
GOOD = [FIRST + f"{number:02x}" + "0" * 60 for number in range(3)]
SHORT = FIRST + "ee" * 15
BEHIND = FIRST + "0f" + "0" * 60
GONE = FIRST + "dd" + "0" * 60
# The time at which the token became invalid, according to APNs.
ENDED = 1700000000


def expect(what, found, expected):
    print(f"  {CLIENT}: {what}: {found}")
    if found != expected:
        sys.exit(f"  {CLIENT}: {what}: expected {expected}")


def wait_for_feedback(read):
    """Waits until the provider's answer has reached the feedback service."""
    for _ in range(50):
        tokens = read()
        if tokens:
            return tokens
        time.sleep(0.2)
    return []


def arrived():
    """The token of each delivered push of this client, with repeats."""
    with open(f"{FOLDER}/apns.ndjson") as lines:
        pushes = [json.loads(line) for line in lines if line.endswith("\n")]
    return sorted(push["token"] for push in pushes if push["answer"].get("status") == 200 and push["token"].startswith(FIRST))


def expect_arrivals(tokens):
    deadline = time.monotonic() + 10
    while len(arrived()) < len(tokens) and time.monotonic() < deadline:
        time.sleep(0.1)
    found = arrived()
    print(f"  {CLIENT}: pushes that reached devices: {len(found)}")
    if found != sorted(tokens):
        sys.exit(f"  {CLIENT}: reached {found}, expected {sorted(tokens)}")


def open_pushjack():
    import pushjack
    from pushjack import apns

    class Client(pushjack.APNSClient):
        host = feedback_host = HOST
        port = GATEWAY
        feedback_port = FEEDBACK

    apns.validate_tokens = lambda tokens: None
    return Client(f"{FOLDER}/sender.pem", default_error_timeout=1)


def pushjack():
    client = open_pushjack()
    response = client.send(GOOD + [GONE], "from pushjack", badge=1, sound="default", extra={"from": "pushjack"})
    expect("errors of valid pushes", response.errors, [])
    client.close()
    client = open_pushjack()
    response = client.send([SHORT, BEHIND], "from pushjack")
    expect("errors", {token: error.code for token, error in response.token_errors.items()}, {SHORT: 5})
    client.close()
    expect_arrivals(GOOD + [BEHIND])
    found = wait_for_feedback(lambda: [(expired.token, expired.timestamp) for expired in client.get_expired_tokens()])
    expect("feedback", found, [(GONE, ENDED)])
    expect("feedback read again", client.get_expired_tokens(), [])


def clerk(package):
    import OpenSSL

    # The package insists on obsolete TLS versions.
    OpenSSL.SSL.TLSv1_METHOD = OpenSSL.SSL.SSLv3_METHOD = OpenSSL.SSL.TLS_METHOD
    module = __import__(package)
    module.Message._validate_tokens = staticmethod(lambda tokens: None)
    session = module.Session()

    def send(message):
        service = module.APNs(session.get_connection((HOST, GATEWAY), cert_file=f"{FOLDER}/sender.pem"))
        result = service.send(message)
        return {token: reason for token, (reason, _) in result.failed.items()}, result.errors, result

    expect("failures of valid pushes", send(module.Message(GOOD + [GONE], alert=f"from {package}", badge=1))[:2], ({}, []))
    failed, errors, result = send(module.Message([GOOD[0], SHORT, BEHIND], alert=f"from {package}"))
    expect("failures", (failed, errors), ({SHORT: 5}, []))
    expect("tokens to send again", result.needs_retry() and result.retry().tokens, [BEHIND])
    expect("failures of the repeat", send(result.retry())[:2], ({}, []))
    expect_arrivals(GOOD + [GOOD[0], BEHIND])

    def read():
        service = module.APNs(session.new_connection((HOST, FEEDBACK), cert_file=f"{FOLDER}/sender.pem"))
        return [(token if isinstance(token, str) else token.decode(), when.timestamp()) for token, when in service.feedback()]

    expect("feedback", wait_for_feedback(read), [(GONE, ENDED)])
    expect("feedback read again", read(), [])


def worker():
    ssl.PROTOCOL_TLSv1 = ssl.PROTOCOL_TLS
    from apns_worker import ApnsManager
    from apns_worker.backend import threaded

    def connect(address, key, certificate):
        connection = threaded.Connection((HOST, GATEWAY if address[1] == 2195 else FEEDBACK), key, certificate)
        connection.ca_certs = lambda: None
        return connection

    threaded._new_connection = connect
    errors = []
    manager = ApnsManager(
        f"{FOLDER}/sender.key", f"{FOLDER}/sender.crt", message_grace=2, error_handler=lambda error: errors.append(error))
    manager.send_aps(GOOD + [GONE], alert="from apns-worker")
    manager.flush_messages()
    expect("errors of valid pushes", errors, [])
    # It pads short tokens.
    manager.send_aps(GOOD[:1], alert="long " * 500)
    manager.send_aps([BEHIND], alert="from apns-worker")
    manager.flush_messages()
    expect("errors", [(error.status, error.token.decode()) for error in errors], [(7, GOOD[0])])
    expect_arrivals(GOOD + [BEHIND])

    def read():
        found = []
        manager.get_feedback(lambda entry: found.append(entry.token if isinstance(entry.token, str) else entry.token.decode()))
        time.sleep(1)
        return found

    expect("feedback", wait_for_feedback(read), [GONE])
    expect("feedback read again", read(), [])


def twisted():
    from apns.feedbackclient import FeedbackClientFactory
    from twisted.internet import reactor

    # It can't send on Python 3, so another client sends.
    client = open_pushjack()
    expect("errors of valid pushes", client.send(GOOD + [GONE], "from pushjack").errors, [])
    client.close()
    expect_arrivals(GOOD)
    FeedbackClientFactory.ENDPOINTS = {"pub": (HOST, FEEDBACK)}
    factory = FeedbackClientFactory("pub", f"{FOLDER}/sender.pem")
    found = []

    def take(_event, _factory, entries):
        found.extend((entry.token.decode(), entry.when.timestamp()) for entry in entries)
        factory.stopTrying()
        reactor.callLater(1, reactor.stop)

    # If the list is still empty, it reconnects by itself.
    factory.listen(factory.EVENT_FEEDBACKS_RECEIVED, take)
    reactor.connectSSL(factory.hostname, factory.port, factory, factory.certificate.options())
    reactor.callLater(20, reactor.stop)
    reactor.run()
    expect("feedback", found, [(GONE, ENDED)])
    expect("feedback read again", client.get_expired_tokens(), [])


{
    "pushjack": pushjack, "apns-clerk": lambda: clerk("apns_clerk"), "apns-client": lambda: clerk("apnsclient"),
    "apns-worker": worker, "twisted-apns": twisted,
}[CLIENT]()
