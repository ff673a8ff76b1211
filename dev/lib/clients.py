"""Uses a gateway through existing clients for Google's servers. dev/clients runs it.

Usage: clients.py CLIENT URL KEY GOOD GONE BAD JOURNAL ACCOUNT
GOOD: a valid device token; GONE: a token of a removed app; BAD: a token unknown to APNs; JOURNAL: the journal of the APNs simulator;
ACCOUNT: the service account file for FCM v1 libraries.
Prints failures, and exits 1 if there are any.
"""

import json
import sys
import time
import uuid

client, url, key, good, gone, bad, journal, account = sys.argv[1:9]
with open(account) as file:
    project = json.load(file)["project_id"]
failures = []
# The sent data, and whether the valid device must get it.
sent = {}


def check(what, condition, seen=None):
    if not condition:
        failures.append(f"{client}: {what}: {seen!r}")


def data(arrives=True):
    """Data that never repeats, because the gateway would treat a repeat as a retransmission."""
    number = str(uuid.uuid4())
    sent[number] = arrives
    return {"n": number}


def arrived():
    """The data that the valid device received, with repeats."""
    with open(journal) as lines:
        pushes = [json.loads(line) for line in lines if line.endswith("\n")]
    return sorted(push["payload"]["n"] for push in pushes if push.get("token") == good and push["payload"].get("n") in sent)


def check_arrivals():
    expected = sorted(number for number, arrives in sent.items() if arrives)
    deadline = time.monotonic() + 10
    while len(arrived()) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(f"what reached the device, of {len(expected)}", arrived() == expected, arrived())


def python_gcm():
    from gcm import GCM
    from gcm.gcm import GCMNotRegisteredException

    sender = GCM(key)
    sender.url = url + "/gcm/send"
    answer = sender.json_request(registration_ids=[good, gone, bad], data=data(), collapse_key="k", time_to_live=600)
    check("success", list(answer.get("success", {}).keys()) == [good], answer)
    check("errors", answer.get("errors") == {"NotRegistered": [gone], "InvalidRegistration": [bad]}, answer)
    check("form", sender.plaintext_request(registration_id=good, data=data()) is None)
    try:
        sender.plaintext_request(registration_id=gone, data=data(arrives=False))
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
    result = sender.send(JSONMessage([good, gone, bad], data(), collapse_key="k"))
    check("success", list(result.success) == [good], result.success)
    check("not registered", result.not_registered == [gone], result.not_registered)
    check("failed", result.failed == {bad: "InvalidRegistration"}, result.failed)
    check("nothing to retry", not result.needs_retry(), result)


def fcm_client():
    from fcmclient import FCM, JSONMessage

    sender = FCM(key, url=url + "/fcm/send")
    result = sender.send(JSONMessage([good, gone, bad], data()))
    check("success", list(result.success) == [good], result.success)
    check("not registered", result.not_registered == [gone], result.not_registered)
    check("failed", result.failed == {bad: "InvalidRegistration"}, result.failed)


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
        wrong.notify_single_device(registration_id=good, data_message=data(arrives=False))
        check("a wrong key", False)
    except AuthenticationError:
        pass


def pushjack():
    from pushjack import GCMClient

    class Client(GCMClient):
        url = None

    Client.url = url + "/gcm/send"
    answer = Client(key).send([good, gone, bad], data(), collapse_key="k", time_to_live=600)
    check("successes", answer.successes == [good], answer.successes)
    errors = [(type(error).__name__, error.identifier) for error in answer.errors]
    check("errors", errors == [("GCMUnregisteredDeviceError", gone), ("GCMInvalidRegistrationError", bad)], errors)
    check("one", Client(key).send(good, data()).successes == [good])


def set_up_django():
    """A project in one file, with its database in memory."""
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "push_notifications"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        PUSH_NOTIFICATIONS_SETTINGS={
            "FCM_API_KEY": key, "FCM_POST_URL": url + "/fcm/send", "GCM_API_KEY": key, "GCM_POST_URL": url + "/gcm/send"})
    django.setup()
    call_command("migrate", verbosity=0)


def django():
    import urllib.error

    set_up_django()
    from push_notifications.conf import get_manager
    from push_notifications.exceptions import GCMError
    from push_notifications.models import GCMDevice

    for cloud in ["FCM", "GCM"]:
        GCMDevice.objects.all().delete()
        for token in [good, gone, bad]:
            GCMDevice.objects.create(registration_id=token, cloud_message_type=cloud)
        everybody, phone = GCMDevice.objects.all(), GCMDevice.objects.get(registration_id=good)
        answer = everybody.send_message("Hello", extra=data(), collapse_key="k", time_to_live=600)
        check(f"{cloud}: answer", [(one["success"], one["failure"]) for one in answer] == [(1, 2)], answer)
        active = [device.registration_id for device in everybody.filter(active=True)]
        check(f"{cloud}: active devices", active == [good], active)
        answer = phone.send_message(None, extra=data())
        check(f"{cloud}: one", answer["success"] == 1, answer)
        try:
            phone.send_message(None, extra={**data(arrives=False), "long": "x" * 5000})
            check(f"{cloud}: a message that is too long", False)
        except GCMError as error:
            check(f"{cloud}: its error", error.args[0]["results"][0]["error"] == "MessageTooBig", error)
    manager = get_manager()
    manager.get_fcm_api_key = manager.get_gcm_api_key = lambda application: "wrong"
    try:
        phone.send_message(None, extra=data(arrives=False))
        check("a wrong key", False)
    except urllib.error.HTTPError as error:
        check("a wrong key", error.code == 401, error)


def run_curl(path, *options, credential=key):
    """Returns status and body of the answer."""
    import subprocess

    run = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "30", "--write-out", "\n%{http_code}", "--header",
         f"Authorization: key={credential}", *options, url + path],
        capture_output=True, text=True, check=True)
    body, _, status = run.stdout.rpartition("\n")
    return int(status), body


def curl_json(path, body, **options):
    status, text = run_curl(path, "--header", "Content-Type: application/json", "--data", json.dumps(body), **options)
    return status, json.loads(text) if status == 200 else text


def curl_form(path, fields):
    return run_curl(path, *(word for name, value in fields.items() for word in ["--data-urlencode", f"{name}={value}"]))


def curl():
    for path in ["/gcm/send", "/fcm/send"]:
        status, answer = curl_json(path, {"registration_ids": [good, gone, bad], "data": data(), "collapse_key": "k"})
        check(f"{path}: status", status == 200, (status, answer))
        check(f"{path}: counts", [answer[name] for name in ["success", "failure", "canonical_ids"]] == [1, 2, 0], answer)
        errors = [result.get("error") for result in answer["results"]]
        check(f"{path}: errors", errors == [None, "NotRegistered", "InvalidRegistration"], answer)
        status, answer = curl_json(path, {"to": good, "notification": {"body": "Hello"}, "data": data()})
        check(f"{path}: one", (status, answer["success"]) == (200, 1), answer)

        status, text = curl_form(path, {"registration_id": good, "data.n": data()["n"], "collapse_key": "k"})
        check(f"{path}: form", status == 200 and text.startswith("id="), (status, text))
        for token, error in [(gone, "NotRegistered"), (bad, "InvalidRegistration"), ("", "MissingRegistration")]:
            status, text = curl_form(path, {"registration_id": token, "data.n": data(arrives=False)["n"]})
            check(f"{path}: form, {error}", (status, text.strip()) == (200, f"Error={error}"), (status, text))

        status, text = curl_json(path, {"to": good, "data": data(arrives=False)}, credential="wrong")
        check(f"{path}: a wrong key", status == 401, (status, text))
        status, text = run_curl(path, "--header", "Content-Type: application/json", "--data", "{")
        check(f"{path}: no JSON", status == 400, (status, text))


def start_firebase():
    """Firebase's library, with a service account file. Its code contains the host name, which is replaced."""
    import firebase_admin as admin
    from firebase_admin import messaging

    messaging._MessagingService.FCM_URL = url + "/v1/projects/{0}/messages:send"
    return admin.initialize_app(admin.credentials.Certificate(account))


def firebase_admin():
    from firebase_admin import exceptions, messaging

    app = start_firebase()
    name = messaging.send(messaging.Message(token=good, data=data()))
    check("name", name.startswith(f"projects/{project}/messages/"), name)
    dry = messaging.send(messaging.Message(token=good, data=data(arrives=False)), dry_run=True)
    check("dry run", dry.endswith("fake_message_id"), dry)
    try:
        messaging.send(messaging.Message(token=gone, data=data(arrives=False)))
        check("a token that is gone", False)
    except messaging.UnregisteredError:
        pass
    try:
        messaging.send(messaging.Message(token=bad, data=data(arrives=False)))
        check("a token that is unknown", False)
    except exceptions.InvalidArgumentError:
        pass
    each = messaging.send_each_for_multicast(messaging.MulticastMessage(tokens=[good, gone], data=data()))
    check("multicast", (each.success_count, each.failure_count) == (1, 1), each)
    messaging._get_messaging_service(app)._fcm_topic_url = f"{url}/v1/projects/{project}/registrations"
    for _ in range(2):
        joined = messaging.subscribe_to_topic([good, bad, "x"], "/topics/news")
        check("a topic joined", (joined.success_count, [error.reason for error in joined.errors]) == (2, ["NOT_FOUND"]), joined.errors)
    name = messaging.send(messaging.Message(topic="news", data=data()))
    check("a topic", name.startswith(f"projects/{project}/messages/"), name)
    for _ in range(2):
        left = messaging.unsubscribe_from_topic([good, bad], "news")
        check("a topic left", left.success_count == 2, left.errors)


def pyfcm2():
    from pyfcm import FCMNotification
    from pyfcm.baseapi import BaseAPI
    from pyfcm.errors import FCMNotRegisteredError, InvalidDataError

    BaseAPI.FCM_END_POINT_BASE = url + "/v1/projects"
    sender = FCMNotification(service_account_file=account, project_id=project)
    answer = sender.notify(fcm_token=good, notification_title="t", notification_body="b", data_payload=data())
    check("name", answer["name"].startswith(f"projects/{project}/messages/"), answer)
    for token, expected in [(gone, FCMNotRegisteredError), (bad, InvalidDataError)]:
        try:
            sender.notify(fcm_token=token, data_payload=data(arrives=False))
            check(f"{expected.__name__} is missing", False)
        except expected:
            pass
    dry = sender.notify(fcm_token=good, data_payload=data(arrives=False), dry_run=True)
    check("dry run", dry["name"].endswith("fake_message_id"), dry)


def async_firebase():
    import asyncio

    import async_firebase as module
    from async_firebase import _credentials
    from async_firebase.errors import UnregisteredError
    from async_firebase.messages import Message

    module.AsyncFirebaseClient.BASE_URL = url
    _credentials.TOKEN_URL = url + "/token"

    async def run():
        sender = module.AsyncFirebaseClient()
        sender.creds_from_service_account_file(account)
        answer = await sender.send(Message(token=good, data=data()))
        check("one", answer.success and answer.message_id.startswith(f"projects/{project}/messages/"), vars(answer))
        answer = await sender.send(Message(token=gone, data=data(arrives=False)))
        check("a token that is gone", isinstance(answer.exception, UnregisteredError), vars(answer))

    asyncio.run(run())


def fcm_django():
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "fcm_django"], SECRET_KEY="x",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        FCM_DJANGO_SETTINGS={"DELETE_INACTIVE_DEVICES": False})
    django.setup()
    call_command("migrate", verbosity=0)
    start_firebase()
    from fcm_django.models import FCMDevice
    from firebase_admin import messaging

    for token in [good, gone]:
        FCMDevice.objects.create(registration_id=token, type="ios")
    FCMDevice.objects.all().send_message(messaging.Message(data=data()))
    active = [device.registration_id for device in FCMDevice.objects.filter(active=True)]
    check("active devices", active == [good], active)


def django_v1():
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "push_notifications"], SECRET_KEY="x",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        PUSH_NOTIFICATIONS_SETTINGS={"FIREBASE_APP": start_firebase()})
    django.setup()
    call_command("migrate", verbosity=0)
    from push_notifications.models import GCMDevice

    for token in [good, gone]:
        GCMDevice.objects.create(registration_id=token, cloud_message_type="FCM")
    GCMDevice.objects.all().send_message("Hello", extra=data())
    active = [device.registration_id for device in GCMDevice.objects.filter(active=True)]
    check("active devices", active == [good], active)


globals()[client]()
check_arrivals()
for failure in failures:
    print(failure, file=sys.stderr)
sys.exit(1 if failures else 0)
