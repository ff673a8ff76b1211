import DeviceRegistry
import PushCore
import Settings

enum GroupsCommand: Command {
  static let page = CommandPage(
    "groups", "create and show device groups, add and remove members",
    forms: [
      .action("create", "--config", ["--app"], ["--users"], ["--json"], "NAME", "MEMBER..."),
      .action("add|remove", "--config", ["--app"], ["--users"], ["--json"], "GROUP", "MEMBER..."),
      .action("show", "--config", ["--app"], ["--json"], "GROUP", .hidden(["--users"])),
    ],
    """
    A GROUP is its name or its notification key, to which requests can be sent. A MEMBER is a registration or a provider's
    token. With --users, a MEMBER is a user id: a push to the group then reaches the devices that each user has at that time. -
    reads members from standard input, one per line. Removing the last device deletes a group.
    """,
    [
      .config(", which names the registry"), .option("app", "APP", "the application; may be left out when one is configured"),
      .flag("users", "the members are users"), .json("print the registry's answer, or the group, as one JSON object"),
    ],
    example: "pushfleet groups create --config pushfleet.json5 family pf1r~00000000000000000000000000")

  static func run(_ options: Options) throws {
    let word = options.action
    guard let group = options.operands.first else {
      throw CommandFailure(.usage, word == "create" ? "name the group" : "name a group, by its name or its notification key")
    }
    if word == "show" {
      try options.refuseOperands(after: 1)
      return try show(group, options)
    }
    let needsMember = word != "create" || !options.has("users")
    guard options.operands.count > 1 || !needsMember else { throw CommandFailure(.usage, "name at least one member, or -") }
    let session = try RegistrySession(options, isReading: word != "create")
    let app = try session.configuration.app(options)
    let words = options.operands.dropFirst()
    let interruption = try Interruption()
    let members = words.isEmpty ? [] : try RegistryNames.read(words, unless: interruption)
    // A group of devices always fits into one change.
    let batch = options.has("users") ? session.configuration.registryLimits.batch : max(1, members.count)
    var key: [UInt8]?
    if word != "create" { key = isKey(group) ? Array(group.utf8) : try record(group, app, session.store).notificationKey }
    var failed: [Int] = []
    var start = 0
    repeat {
      guard start == 0 || !interruption.hasCome else {
        throw CommandFailure(
          .interrupted, "interrupted: \(start) of \(members.count) members are done; repeating `groups add` or `remove` is safe"
        )
      }
      let change: JSONObject = [
        "op": "group_\(word == "create" && key != nil ? "add" : word)", "app": app,
        key == nil ? "notification_key_name" : "notification_key": key ?? Array(group.utf8),
        options.has("users") ? "users" : "registration_ids": members[start...].prefix(batch).map { Array($0.utf8) },
      ]
      guard case .notificationKey(let answered, let missing) = try session.apply(change, options) else { return }
      key = answered
      failed += missing.map { start + $0 }
      start += batch
    } while start < members.count
    if let key, !options.asJSON { Terminal.print(key) }
    for index in failed { Terminal.notice("member \(index + 1): no such device is registered") }
    if !failed.isEmpty { throw CommandFailure(.badInput, "\(failed.count) of the members are not registered devices") }
  }

  private static func isKey(_ group: String) -> Bool { RegistryID.kind(of: Array(group.utf8)) == .group }

  private static func record(_ group: String, _ app: [UInt8], _ store: DeviceStore) throws -> GroupRecord {
    let text = Array(group.utf8)
    guard let record = try store.group(isKey(group) ? .key(text) : .name(text), app: app) else {
      throw CommandFailure(.badInput, "there is no such group in \(String(decoding: app, as: UTF8.self))")
    }
    return record
  }

  private static func show(_ group: String, _ options: Options) throws {
    let session = try RegistrySession(options)
    let app = try session.configuration.app(options)
    let record = try record(group, app, session.store)
    let members = record.users ?? record.devices
    let names = members.isEmpty ? ["none"] : members.map { String(printing: $0) }
    options.print(
      [
        "notification_key": record.notificationKey, "notification_key_name": record.name,
        record.users == nil ? "registration_ids" : "users": members, "created_at": Timestamp.text(record.createdAt),
      ],
      text: FactList.text(
        [
          ("name", String(printing: record.name)), ("notification key", String(printing: record.notificationKey)),
          ("created", Figures.moment(record.createdAt)),
          (record.users == nil ? "devices" : "users", names[0]),
        ] + names.dropFirst().map { ("", $0) }))
  }
}
