import Broker
import DeviceRegistry
import Logging
import PushCore

extension Setting {
  /// All settings, grouped by the headings of `docs/configuration.md`.
  static let table: KeyValuePairs<String, [Setting]> = [
    "Broker": [
      Setting("broker", .texts("`amqp://…` or `amqps://…`, or a list"), unset: "required")
        .help("Addresses of the broker. They are tried in turn."),
      Setting("ca", .material("PEM"), unset: system, "The authority that signed the certificate of an `amqps` broker."),
      Setting("brokerCA", .material("PEM"), unset: "as `ca`", "Another name for `ca`."),
      Setting("brokerCertificate", .material("`.p12` or PEM")).help("Client certificate for `amqps` brokers.")
        .help("At an address without a password, [it also proves the user](operate/permissions.md#client-certificates)."),
      Setting("brokerKey", .material("PEM"), unset: "in `brokerCertificate`", "Key of the client certificate."),
      Setting("brokerPassphrase", .text("text"), "Passphrase of the client certificate's key."),
      Setting("prefix", .text("1 to 64 letters, digits, `.`, `_`, `-`", "push")).help("Prefix of every exchange and queue.")
        .help("Fleets with different prefixes can share a broker."),
      Setting("replyTo", .texts("list of queues"), unset: "every queue except the fleet's own")
        .help("Queues that may receive results, in addition to direct reply-to and exclusive queues.")
        .help("An empty list allows only those two."),
    ],
    "Workers": [
      Setting("shards", .number(1...64, 1), "Threads of a worker. Each thread has its own connections."),
      Setting("prefetch", .number(1...10_000, 1_000)).help("Most unacknowledged requests that a shard holds from each lane.")
        .help("A shard holds fewer while bodies are large. If one application fills the prefetch, the shard reads up to 10,000")
        .help("more, or [up to 100,000 in an outage](operate/scaling.md#prefetch)."),
      Setting("laneQueues", .number(1...Topology.mostLaneQueues, 1)).help("Queues of each lane of requests.")
        .help("[More than one](operate/scaling.md#lanes-of-several-queues) needs a plugin of RabbitMQ."),
      Setting("drainTimeout", .number(0...3_600, 25, "seconds"))
        .help("Time that a stopping worker or gateway waits for outstanding answers."),
    ],
    "Outcomes": [
      Setting("results", .choice(ResultsSetting.allCases.map(\.rawValue), "none"))
        .help("Requests whose result is published to `push.results`."),
      Setting("deadLetters", .words(PushError.withOptionalLetter.map(\.rawValue)))
        .help("Outcomes that [also leave a dead letter](send/outcomes.md#dead-letters-on-request)."),
      Setting("receipts", .flag(false), "Publish the acknowledgements of devices to `push.receipts`."),
    ],
    "Limits": [
      Setting("limits.body", .number(1_024...(4 << 20), RequestLimits().json.bytes, "bytes"))
        .help("Largest size of a whole request."),
      Setting("limits.notification", .number(1...65_536, RequestLimits().notificationBytes, "bytes"))
        .help("Largest size of `notification` in [GCM's shape](send/request.md)."),
      Setting("limits.data", .number(1...65_536, RequestLimits().dataBytes, "bytes"), "Largest size of `data`."),
      Setting("limits.topicData", .number(1...65_536, RequestLimits().topicDataBytes, "bytes"))
        .help("Largest size of `data` in a request to a topic or condition."),
    ],
    "Retries": [
      Setting(
        "retry.steps",
        .texts("list of times from `100ms` to `24h`, in increasing order", RetrySettings.defaultSteps.joined(separator: " "))
      )
      .help("The times that requests can wait before the next attempt. Each step has its own queue.")
      .help("Units: `ms`, `s`, `m`, `h`."),
      Setting("retry.attempts", .number(1...100, 10), "Attempts before a request becomes a dead letter."),
    ],
    "Registry": [
      Setting("registry", .text("`sqlite:<file>` or `postgresql://…`"))
        .help("[The database](send/registry.md) of devices, topics, groups and users.")
        .help("Without it, requests can name only provider tokens, Firebase installations and FCM's own topics."),
      Setting("registryStaleAfter", .time(days: 3_650, example: "270d", isDefault: false), unset: "never")
        .help("Broadcasts to topics and conditions skip a device that hasn't registered for this time.")
        .help("Feedback reports it as `Stale`."),
      Setting("registryLimits.groupMembers", .number(1...1_000_000, RegistryLimits().groupMembers))
        .help("Most members of a device group."),
      Setting("registryLimits.topicsPerDevice", .number(1...1_000_000, RegistryLimits().topicsPerDevice))
        .help("Most topics of a device."),
      Setting("registryLimits.devicesPerUser", .number(1...1_000_000, RegistryLimits().devicesPerUser))
        .help("Most devices of a user."),
      Setting("registryLimits.batch", .number(1...10_000, RegistryLimits().batch), "Most tokens in one change."),
    ],
    "Broadcasts": [
      Setting("fanOut.pageSize", .number(1...5_000, 1_000), "Devices on each page of a broadcast to a topic or condition."),
      Setting("fanOut.prefetch", .number(1...64, 4))
        .help("Most unacknowledged pages of each priority (`high`, `normal`) that a shard holds."),
      Setting("breaker.percent", .number(1...100, 50, "percent"))
        .help("If more than this share of an application's answers within a minute refuse the token,")
        .help("no token is marked as dead and campaigns are held."),
      Setting("breaker.sample", .number(1...1_000_000, 200), "Answers that `breaker.percent` needs before it applies."),
    ],
    "Metrics and log": [
      Setting("metrics", .text("`host:port`, or `host` for port 9464"))
        .help("Address of `/metrics` (for Prometheus), `/livez`, `/readyz` and, for this machine, a status page at `/`."),
      Setting("log", .choice(LogLevel.allCases.map(\.rawValue), "info"), "Lowest level that is logged."),
      Setting("logFormat", .choice(LogFormat.allCases.map(\.rawValue)), unset: "`text` on a terminal, otherwise `json`")
        .help("Format of a line of the [log](operate/watching.md#log)."),
    ],
    "Traces": [
      Setting("trace.keep", .time(days: 365, example: "1d", orNone: true))
        .help("How long [`pushfleet trace`](operate/watching.md#what-became-of-a-request) knows a request."),
      Setting("trace.megabytes", .number(8...1_000_000, 256, "MiB"), "Space for the trace at the broker."),
      Setting("trace.perSecond", .number(1...100_000, 500))
        .help("Most requests that a shard notes per second. Failed, expired and refused requests come in addition."),
      Setting("traces", .text("`http://…` or `https://…`"), unset: "`OTEL_EXPORTER_OTLP_ENDPOINT`, or none")
        .help("OpenTelemetry collector that receives [spans](operate/watching.md#spans) of sampled requests")
        .help("by OTLP over HTTP."),
      Setting("tracesHeaders", .text("`name=value,…`"), unset: "`OTEL_EXPORTER_OTLP_HEADERS`")
        .help("Headers for the collector, with percent-encoded values."),
      Setting("tracesCA", .material("PEM"), unset: "`OTEL_EXPORTER_OTLP_CERTIFICATE`, or \(system)")
        .help("The authority that signed the collector's certificate."),
    ],
    "Proxy": [
      Setting("proxy", .text(proxyForm), unset: "`HTTPS_PROXY`, except for the hosts of `NO_PROXY`")
        .help("Proxy for connections to providers, token endpoints and the collector.")
    ],
    "HTTP": [
      Setting("gateway.http.listen", .text("`host:port`"), "Address of the HTTP interface."),
      Setting("gateway.http.wait", .number(0...300, 5, "seconds"), "Time that the gateway waits for a request's result."),
      Setting("gateway.http.certificate", .material("PEM"), unset: "plain HTTP", "Certificate chain for TLS."),
      Setting("gateway.http.key", .material("PEM"), unset: "plain HTTP", "Key of the certificate."),
      Setting("gateway.http.retransmission", .number(0...600, 10, "seconds"))
        .help("Within this time, identical requests without `Idempotency-Key`")
        .help("[count as one request](send/gateway.md#the-same-request-twice). With 0, each request counts as a new one."),
      Setting("gateway.http.shared", .flag(false))
        .help("Gateways that share a registry also recognise requests without `Idempotency-Key` that another gateway has")
        .help("received.")
        .help("This costs two registry writes per request."),
      Setting("gateway.http.deviceUsers", .flag(true))
        .help("A device may use its secret to name its user, and to join and leave groups of users."),
      Setting("gateway.http.registerUnknown", .flag(true))
        .help("Unknown provider tokens that a sender adds to groups and topics")
        .help("[are registered](send/gateway.md#groups-and-topics-of-tokens)."),
      Setting("gateway.http.login.proxies", .texts("list of addresses and networks"), unset: "required")
        .help("Proxies that authenticate [users of the console](operate/console.md#login-by-a-proxy)."),
      Setting("gateway.http.login.userHeader", .text("header"), unset: "required", "The user's name."),
      Setting("gateway.http.login.groupsHeader", .text("header"))
        .help("The user's groups, with commas between them."),
      Setting("gateway.http.login.viewKey", .text("id of a key"), unset: "no access")
        .help("The key whose rights and applications users have."),
      Setting("gateway.http.login.operateKey", .text("id of a key"), unset: "`viewKey`", "The same for operators."),
      Setting("gateway.http.login.operators", .texts("list of groups"), "The groups whose members use `operateKey`."),
    ],
    "APNs' binary interface": [
      Setting("gateway.apns.listen", .text("`host:port`"), "Address of the binary interface."),
      Setting("gateway.apns.feedback", .text("`host:port`"), "Address of its feedback service."),
      Setting("gateway.apns.badTokens", .flag(false))
        .help("The feedback service [also lists tokens](send/gateway-apns.md#feedback-service) that APNs calls bad."),
      Setting("gateway.apns.certificate", .material("PEM"), unset: "required", "Certificate chain for TLS."),
      Setting("gateway.apns.key", .material("PEM"), unset: "required", "Key of the certificate."),
      Setting("gateway.apns.clients", .material("PEM"))
        .help("Authorities that sign the senders' certificates. The certificate names the sender's application."),
      Setting("gateway.apns.app", .text("application"))
        .help("The application of all senders. With it, senders need no certificate."),
    ],
    "Metrics": [
      Setting("gateway.metrics", .text("`host:port`, or `host` for port 9464"), unset: "as `metrics`")
        .help("Address of a gateway's metrics. A gateway needs its own address if a worker on the same machine uses `metrics`.")
    ],
    "Content pages": [
      Setting("richPages.url", .text("`https://…` or `http://…`, at most 200 bytes"))
        .help("Address at which devices reach the gateway's HTTP interface."),
      Setting("richPages.keep", .time(days: 3_650, example: "30d"))
        .help("Time that a page stays available after its request was last sent."),
      Setting("richPages.bytes", .number(1_024...262_144, 65_536, "bytes"), "Largest size of a page's content."),
      Setting("richPages.megabytes", .number(1...1_048_576, 1_024, "MiB"))
        .help("Largest size of all pages of an application together.")
        .help("A request without room for its page ends as `MessageTooBig`."),
    ],
    "Applications": [
      Setting("apps.<id>.producers", .texts("list of the broker's users"), unset: "everybody who may publish")
        .help("Users that may send to the application, change its devices in the registry and acknowledge for them.")
        .help("Their messages need the property `user_id`.")
        .help("[Users that may write to the default exchange](operate/permissions.md) can bypass this."),
      Setting("apps.<id>.defaultPriority", .choice(["normal", "high"], "normal"))
        .help("Priority of requests that name no priority."),
      Setting("apps.<id>.unknownKeys", .choice(["refuse", "ignore"], "refuse"))
        .help("Treatment of unknown names in a request.")
        .help("`ignore` also accepts [some values that old senders write](send/request.md#unknown-names)."),
      Setting("apps.<id>.unknownOutcomes", .choice(UnknownOutcome.allCases.map(\.rawValue), "retry"))
        .help("Treatment of a push that got no answer, so that it may have been delivered.")
        .help("`retry` sends it again. `drop` ends it as `Unknown`.")
        .help("The header `x-push-unknown` sets it for one request."),
      Setting("apps.<id>.countBadges", .flag(false))
        .help("An alert without `badge` is treated like one with `\"badge\": \"auto\"`:")
        .help("[badge counters](send/registry.md#badge-counters)."),
      Setting("apps.<id>.upmc", .flag(false)).help("Pushes contain the object `mps`.")
        .help("The app's library [acknowledges pushes](send/registry.md#acknowledgements-and-badges) with it."),
    ],
    "APNs": [
      Setting("apps.<id>.apns[].key", .material("`.p8` or PEM"), unset: "").help("Apple's key file, for token authentication.")
        .help("With `certificate`: the certificate's key, if it is in another file."),
      Setting("apps.<id>.apns[].keyID", .text("10 letters and digits"), unset: "", "Id of the key."),
      Setting("apps.<id>.apns[].teamID", .text("10 letters and digits"), unset: "", "Id of the team."),
      Setting("apps.<id>.apns[].certificate", .material("`.p12` or PEM"), unset: "")
        .help("The certificate, for certificate authentication."),
      Setting("apps.<id>.apns[].passphrase", .text("text"), "Passphrase of the certificate's key."),
      Setting("apps.<id>.apns[].topic", .text("bundle id"), unset: "the application's id", "The application's own topic."),
      Setting("apps.<id>.apns[].topics", .texts("list of topics")).help("Further topics that a request may choose.")
        .help("The application's own topic is always allowed, with or without the suffix of a push type."),
      Setting("apps.<id>.apns[].environment", .choice(APNsConfiguration.Environment.allCases.map(\.rawValue), "production"))
        .help("APNs environment of the credential."),
      Setting("apps.<id>.apns[].timeout", .number(1...300, 30, "seconds"), "Time that APNs has to answer a push."),
      Setting("apps.<id>.apns[].endpoint", .text("`https://host:port`"), unset: "Apple's", "Address of a simulator or proxy."),
      Setting("apps.<id>.apns[].ca", .material("PEM"), unset: system, "The authority that signed the endpoint's certificate."),
      Setting("apps.<id>.apns[].proxy", .text(proxyForm), unset: "as the fleet's `proxy`", "Proxy for connections to APNs."),
      Setting("apps.<id>.apns[].broadcastEndpoint", .text("`https://host:port`"), unset: "as for pushes")
        .help("Host for broadcasts to channels.")
        .help("Apple documents its push hosts for this, and also `api-broadcast.push.apple.com` (`api-broadcast.sandbox…`)."),
      Setting("apps.<id>.apns[].channelsEndpoint", .text("`https://host:port`"), unset: "`endpoint`, or Apple's")
        .help("Host on which `pushfleet channels` manages channels.")
        .help("Apple's is `api-manage-broadcast.push.apple.com:2196`, or port 2195 of the sandbox's host."),
    ],
    "FCM": [
      Setting("apps.<id>.fcm.serviceAccount", .material("JSON"), unset: "required", "Key file of the service account."),
      Setting("apps.<id>.fcm.package", .text("package name"), unset: "the application's id")
        .help("The Android package that `restricted_package_name` in a request may name."),
      Setting("apps.<id>.fcm.messagesPerMinute", .number(1...1_000_000_000, 600_000, "messages a minute"))
        .help("The project's quota. All shards of the fleet share it."),
      Setting("apps.<id>.fcm.endpoint", .text("`https://host:port`"), unset: "Google's")
        .help("Address of a simulator or proxy. It must also issue access tokens."),
      Setting("apps.<id>.fcm.ca", .material("PEM"), unset: system, "The authority that signed the endpoint's certificate."),
      Setting("apps.<id>.fcm.proxy", .text(proxyForm), unset: "as the fleet's `proxy`")
        .help("Proxy for connections to FCM and its token endpoint."),
    ],
    "Web push": [
      Setting("apps.<id>.webpush.key", .materials("PEM, or a list"), unset: "required")
        .help("VAPID keys, as `pushfleet vapid create` makes them. The first is for new subscriptions.")
        .help("Older subscriptions keep the key that they were made with."),
      Setting("apps.<id>.webpush.subject", .text("`mailto:name@example.com` or `https://…`"), unset: "required")
        .help("Your address for push services, if they have a question about your pushes."),
      Setting("apps.<id>.webpush.hosts", .texts("list of hosts, `*.domain`, or `*`", pushServices))
        .help("Push services that subscriptions may name. `*.domain` means its subdomains, and `*` every host with a public")
        .help("address. Only a host that is listed by its exact name may have a private or loopback address."),
      Setting("apps.<id>.webpush.ca", .material("PEM"), unset: system)
        .help("The authority that signed the push services' certificates, for a simulator or your own push service."),
      Setting("apps.<id>.webpush.proxy", .text(proxyForm), unset: "as the fleet's `proxy`")
        .help("Proxy for connections to push services."),
    ],
    "Webhooks": [
      Setting("apps.<id>.webhooks.<name>.url", .text("`https://host/path`"), unset: "required")
        .help("Address that receives events; `pushfleet webhooks` posts them. The name is for you."),
      Setting("apps.<id>.webhooks.<name>.secret", .materials("`whsec_…`, or a list"), unset: "required")
        .help("Secrets that sign each call: `whsec_` and the base64 of 24 to 64 random bytes, or files with that.")
        .help("The first is the newest."),
      Setting(
        "apps.<id>.webhooks.<name>.events", .texts("list of `results`, `feedback`, `receipts`, `audit`"), unset: "required"
      )
      .help("Events of the application that are posted. There are results and receipts only with the settings `results` and")
      .help("`receipts`."),
      Setting("apps.<id>.webhooks.<name>.ca", .material("PEM"), unset: system)
        .help("The authority that signed the receiver's certificate."),
      Setting("apps.<id>.webhooks.<name>.proxy", .text(proxyForm), unset: "as the fleet's `proxy`")
        .help("Proxy for connections to the receiver."),
    ],
  ]

  private static let system = "the system's authorities"
  private static let proxyForm = "`http://user:password@host:port`, or `none`"
  /// Those of Chrome, Firefox, Safari and Edge.
  private static let pushServices =
    "fcm.googleapis.com *.push.services.mozilla.com *.push.apple.com *.notify.windows.com"
}
