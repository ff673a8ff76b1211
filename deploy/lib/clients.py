"""Speaks to a gateway through clients that others wrote for Google's servers; deploy/clients runs it.

Usage: clients.py CLIENT URL KEY GOOD GONE   (GOOD and GONE: tokens of a device that is there and of one that isn't)
Prints what went wrong, and exits 1 then.
"""

import sys
import uuid

client, url, key, good, gone = sys.argv[1:6]
failures = []


def check(what, condition, seen=None):
    if not condition:
        failures.append(f"{client}: {what}: {seen!r}")


def data():
    """Never the same twice: the gateway takes that for a retransmission."""
    return {"n": str(uuid.uuid4())}


def python_gcm():
    from gcm import GCM
    from gcm.gcm import GCMNotRegisteredException

    sender = GCM(key)
    sender.url = url + "/gcm/send"
    answer = sender.json_request(registration_ids=[good, gone], data=data(), collapse_key="k", time_to_live=600)
    check("success", list(answer.get("success", {}).keys()) == [good], answer)
    check("errors", answer.get("errors") == {"NotRegistered": [gone]}, answer)
    check("form", sender.plaintext_request(registration_id=good, data=data()) is None)
    try:
        sender.plaintext_request(registration_id=gone, data=data())
        check("form of a token that is gone", False)
    except GCMNotRegisteredException:
        pass


def gcm():
    import gcm as module

    sender = module.GCM(key, url=url + "/gcm/send")
    answer = sender.json_request(registration_ids=[good, gone], data=data())
    check("errors", "NotRegistered" in answer.get("errors", {}), answer)


def gcm_clerk():
    from gcm_clerk import GCM, JSONMessage

    sender = GCM(key, url=url + "/gcm/send")
    result = sender.send(JSONMessage([good, gone], data(), collapse_key="k"))
    check("success", list(result.success) == [good], result.success)
    check("not registered", result.not_registered == [gone], result.not_registered)
    check("nothing to retry", not result.needs_retry(), result)


def fcm_client():
    from fcmclient import FCM, JSONMessage

    sender = FCM(key, url=url + "/fcm/send")
    result = sender.send(JSONMessage([good, gone], data()))
    check("success", list(result.success) == [good], result.success)
    check("not registered", result.not_registered == [gone], result.not_registered)


def pyfcm():
    from pyfcm import FCMNotification
    from pyfcm.errors import AuthenticationError

    sender = FCMNotification(api_key=key)
    sender.FCM_END_POINT = url + "/fcm/send"
    sender.INFO_END_POINT = url + "/iid/info/"
    one = sender.notify_single_device(registration_id=good, message_title="t", data_message=data())
    check("one", one["success"] == 1, one)
    many = sender.notify_multiple_devices(registration_ids=[good, gone], data_message=data())
    check("many", many["success"] == 1 and many["failure"] == 1, many)
    known = sender.get_registration_id_info(good)
    check("info", known and known.get("platform") == "IOS", known)
    unknown = sender.get_registration_id_info(gone)
    check("info of an unknown token", unknown is None, unknown)
    wrong = FCMNotification(api_key="wrong")
    wrong.FCM_END_POINT = url + "/fcm/send"
    try:
        wrong.notify_single_device(registration_id=good, data_message=data())
        check("a wrong key", False)
    except AuthenticationError:
        pass


def pushjack():
    from pushjack import GCMClient

    class Client(GCMClient):
        url = None

    Client.url = url + "/gcm/send"
    answer = Client(key).send([good, gone], data(), collapse_key="k", time_to_live=600)
    check("successes", answer.successes == [good], answer.successes)
    check("errors", [type(error).__name__ for error in answer.errors] == ["GCMUnregisteredDeviceError"], answer.errors)
    check("one", Client(key).send(good, data()).successes == [good])


def firebase_admin():
    import datetime

    import firebase_admin as admin
    import google.auth.credentials
    from firebase_admin import messaging

    class Token(google.auth.credentials.Credentials):
        def refresh(self, request):
            self.token = key
            self.expiry = datetime.datetime.utcnow() + datetime.timedelta(hours=1)

    class Credential(admin.credentials.Base):
        def get_credential(self):
            return Token()

    messaging._MessagingService.FCM_URL = url + "/v1/projects/{0}/messages:send"
    app = admin.initialize_app(Credential(), {"projectId": "example"})
    name = messaging.send(messaging.Message(token=good, data=data()))
    check("name", name.startswith("projects/example/messages/"), name)
    dry = messaging.send(messaging.Message(token=good, data=data()), dry_run=True)
    check("dry run", dry.endswith("fake_message_id"), dry)
    try:
        messaging.send(messaging.Message(token=gone, data=data()))
        check("a token that is gone", False)
    except messaging.UnregisteredError:
        pass
    each = messaging.send_each_for_multicast(messaging.MulticastMessage(tokens=[good, gone], data=data()))
    check("multicast", (each.success_count, each.failure_count) == (1, 1), each)
    messaging._get_messaging_service(app)._fcm_topic_url = url + "/v1/projects/example/registrations"
    for _ in range(2):
        joined = messaging.subscribe_to_topic([good, gone], "/topics/news")
        check("a topic joined", (joined.success_count, [error.reason for error in joined.errors]) == (1, ["NOT_FOUND"]), joined.errors)
    name = messaging.send(messaging.Message(topic="news", data=data()))
    check("a topic", name.startswith("projects/example/messages/"), name)
    for _ in range(2):
        left = messaging.unsubscribe_from_topic(good, "news")
        check("a topic left", left.success_count == 1, left.errors)


globals()[client]()
for failure in failures:
    print(failure, file=sys.stderr)
sys.exit(1 if failures else 0)
