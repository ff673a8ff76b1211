"""Senders of APNs' binary interface that others wrote, from PyPI, unchanged but for the address: one a process, since they change each other's modules.

Usage: apns_senders.py CLIENT FOLDER GATEWAY-PORT FEEDBACK-PORT
FOLDER has sender.pem (certificate and key), sender.crt and sender.key. Sends to three devices and to one whose token is gone, then something
that is wrong (a token too short, a payload too long) with a good one behind it, then reads the feedback service; says how each went, and exits 1 where it wasn't told what it should have been. Their own checks of
a token's length are turned off: here the door is to find it.
"""

import ssl
import sys
import time

CLIENT, FOLDER, GATEWAY, FEEDBACK = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
HOST = "127.0.0.1"
# The first byte tells the clients' devices apart in the simulator's journal.
FIRST = {"pushjack": "a1", "apns-clerk": "a2", "apns-client": "a3", "apns-worker": "a4"}[CLIENT]
GOOD = [FIRST + f"{number:02x}" + "0" * 60 for number in range(3)]
SHORT = FIRST + "ee" * 15
BEHIND = FIRST + "0f" + "0" * 60
GONE = FIRST + "dd" + "0" * 60


def expect(what, found, expected):
    print(f"  {CLIENT}: {what}: {found}")
    if found != expected:
        sys.exit(f"  {CLIENT}: {what}: expected {expected}")


def wait_for_feedback(read):
    """The token's end has to come back from the provider first."""
    for _ in range(50):
        tokens = read()
        if tokens:
            return tokens
        time.sleep(0.2)
    return []


def pushjack():
    import pushjack
    from pushjack import apns

    class Client(pushjack.APNSClient):
        host = feedback_host = HOST
        port = GATEWAY
        feedback_port = FEEDBACK

    apns.validate_tokens = lambda tokens: None
    client = Client(f"{FOLDER}/sender.pem", default_error_timeout=1)
    response = client.send(GOOD + [GONE], "from pushjack", badge=1, sound="default", extra={"from": "pushjack"})
    expect("errors of what is well", response.errors, [])
    client.close()
    client = Client(f"{FOLDER}/sender.pem", default_error_timeout=1)
    response = client.send([SHORT, BEHIND], "from pushjack")
    expect("errors", {token: error.code for token, error in response.token_errors.items()}, {SHORT: 5})
    client.close()
    found = wait_for_feedback(lambda: [expired.token for expired in client.get_expired_tokens()])
    expect("feedback", sorted(set(found)), [GONE])
    expect("feedback read again", client.get_expired_tokens(), [])


def clerk(package):
    import OpenSSL

    # Pinned to versions of TLS that nobody speaks any more.
    OpenSSL.SSL.TLSv1_METHOD = OpenSSL.SSL.SSLv3_METHOD = OpenSSL.SSL.TLS_METHOD
    module = __import__(package)
    module.Message._validate_tokens = staticmethod(lambda tokens: None)
    session = module.Session()

    def send(tokens):
        service = module.APNs(session.get_connection((HOST, GATEWAY), cert_file=f"{FOLDER}/sender.pem"))
        result = service.send(module.Message(tokens, alert=f"from {package}", badge=1))
        return result.failed, result.errors, result

    expect("failures of what is well", send(GOOD + [GONE])[:2], ({}, []))
    failed, errors, result = send([GOOD[0], SHORT, BEHIND])
    expect("failures", ({token: reason for token, (reason, _) in failed.items()}, errors), ({SHORT: 5}, []))
    expect("what it would send again", result.needs_retry() and result.retry().tokens, [BEHIND])

    def read():
        service = module.APNs(session.new_connection((HOST, FEEDBACK), cert_file=f"{FOLDER}/sender.pem"))
        return [token if isinstance(token, str) else token.decode() for token, _ in service.feedback()]

    expect("feedback", sorted(set(wait_for_feedback(read))), [GONE])
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
    expect("errors of what is well", errors, [])
    # It fills short tokens up.
    manager.send_aps(GOOD[:1], alert="long " * 500)
    manager.send_aps([BEHIND], alert="from apns-worker")
    manager.flush_messages()
    expect("errors", [(error.status, error.token.decode()) for error in errors], [(7, GOOD[0])])

    def read():
        found = []
        manager.get_feedback(lambda entry: found.append(entry.token if isinstance(entry.token, str) else entry.token.decode()))
        time.sleep(1)
        return found

    expect("feedback", sorted(set(wait_for_feedback(read))), [GONE])


{
    "pushjack": pushjack, "apns-clerk": lambda: clerk("apns_clerk"), "apns-client": lambda: clerk("apnsclient"),
    "apns-worker": worker,
}[CLIENT]()
