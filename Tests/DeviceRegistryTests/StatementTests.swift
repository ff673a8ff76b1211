import Testing

@testable import DeviceRegistry

@Suite("Statements")
struct StatementTests {
  // Statements on large tables must use an index, with and without statistics. Otherwise, a registry of a million devices would
  // take seconds instead of microseconds.
  @Test("No statement of delivery or registration scans a table", arguments: [false, true])
  func plans(_ analyzed: Bool) throws {
    let registry = try Backend.sqlite.open()
    let session = try #require(registry.store.session as? SQLiteConnection)
    for index in 0..<300 {
      _ = try registry.register(
        "t\(index)", #""installation":"i\#(index)","user":"u\#(index / 2)","topics":["a","b\#(index % 7)"]"#)
    }
    if analyzed { try registry.store.analyze() }
    for (name, statement) in Self.statements {
      let plan = try session.explain(statement)
      #expect(!plan.isEmpty)
      #expect(
        ["topicsOfDevice", "tokenOfEndpoint"].contains(name) || !plan.contains { $0.hasPrefix("USE TEMP B-TREE") },
        "\(name): \(plan)")
      // A subquery with a limit may begin at any device of an application.
      #expect(
        !plan.contains { $0.hasSuffix("INDEX devices_by_app (app=?)") }
          || plan.contains { $0.hasPrefix("CO-ROUTINE") || $0.hasPrefix("SCALAR SUBQUERY") },
        "\(name): \(plan)")
      for step in plan where step.hasPrefix("SCAN") && step != "SCAN CONSTANT ROW" {
        // The results of a subquery are scanned, tables aren't.
        #expect(
          ["SCAN m", "SCAN x", "SCAN d"].contains(step) && plan.contains { $0.hasPrefix("CO-ROUTINE") }, "\(name): \(plan)")
      }
    }
  }

  private static let statements: [(String, Statement)] = [
    ("deviceByToken", SQL.deviceByToken), ("tokenOfEndpoint", SQL.tokenOfEndpoint), ("deviceByKey", SQL.deviceByKey),
    ("deviceByAlias", SQL.deviceByAlias),
    ("devicesByInstallation", SQL.devicesByInstallation), ("countTopics", SQL.countTopics), ("isMember", SQL.isMember),
    ("userByName", SQL.userByName), ("userAndDevices", SQL.userAndDevices), ("refreshDevice", SQL.refreshDevice),
    ("takeOverTopics", SQL.takeOverTopics), ("takeOverGroups", SQL.takeOverGroups), ("redirectAliases", SQL.redirectAliases),
    ("replaceToken", SQL.replaceToken), ("leaveTopics", SQL.leaveTopics), ("countOtherTopics", SQL.countOtherTopics),
    ("topicsByName", SQL.topicsByName), ("groupByName", SQL.groupByName), ("groupByKey", SQL.groupByKey),
    ("groupsOfDevice", SQL.groupsOfDevice), ("devicesWithApp", SQL.devicesWithApp), ("aliasTarget", SQL.aliasTarget),
    ("topicPage", SQL.topicPage), ("userPage", SQL.userPage), ("memberIDs", SQL.memberIDs),
    ("appDeviceIDs", SQL.appDeviceIDs), ("devicesByID", SQL.devicesByID), ("deviceRange", SQL.deviceRange),
    ("sampleMembers", SQL.sampleMembers), ("sampleApp", SQL.sampleApp), ("sampleUser", SQL.sampleUser),
    ("recordsOfApp", SQL.recordsOfApp), ("topicsOfDevice", SQL.topicsOfDevice), ("goneDevices", SQL.goneDevices),
    ("counterByNumber", SQL.counterByNumber), ("counterByToken", SQL.counterByToken),
    ("badge", SQL.badge),
    ("requestByName", SQL.requestByName), ("pageByDigest", SQL.pageByDigest),
    ("campaignByID", SQL.campaignByID), ("loadPage", SQL.loadPage),
  ]
}
