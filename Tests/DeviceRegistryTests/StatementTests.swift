import Testing

@testable import DeviceRegistry

@Suite("Statements")
struct StatementTests {
  // Statements that visit many rows or wait for many must find them by an index, with and without statistics: without one, a registry
  // of a million devices would take seconds for what takes microseconds.
  @Test("No statement of delivery or registration scans a table", arguments: [false, true])
  func plans(_ analyzed: Bool) throws {
    let registry = try Backend.sqlite.open()
    let store = try #require(registry.store as? SQLiteStore)
    for index in 0..<300 {
      _ = try registry.register(
        "t\(index)", #""installation":"i\#(index)","user":"u\#(index / 2)","topics":["a","b\#(index % 7)"]"#)
    }
    if analyzed { try store.analyze() }
    for (name, statement) in Self.statements {
      let plan = try store.session.explain(statement)
      #expect(!plan.isEmpty)
      #expect(name == "topicsOfDevice" || !plan.contains { $0.hasPrefix("USE TEMP B-TREE") }, "\(name): \(plan)")
      for step in plan where step.hasPrefix("SCAN") {
        // The results of a subquery are scanned, tables aren't.
        #expect(
          ["SCAN m", "SCAN x", "SCAN d"].contains(step) && plan.contains { $0.hasPrefix("CO-ROUTINE") }, "\(name): \(plan)")
      }
    }
  }

  private static let statements: [(String, Statement)] = [
    ("deviceByToken", SQL.deviceByToken), ("deviceByKey", SQL.deviceByKey), ("deviceByAlias", SQL.deviceByAlias),
    ("devicesByInstallation", SQL.devicesByInstallation), ("countTopics", SQL.countTopics), ("isMember", SQL.isMember),
    ("userByName", SQL.userByName), ("userAndDevices", SQL.userAndDevices), ("refreshDevice", SQL.refreshDevice),
    ("takeOverTopics", SQL.takeOverTopics), ("takeOverGroups", SQL.takeOverGroups), ("redirectAliases", SQL.redirectAliases),
    ("replaceToken", SQL.replaceToken), ("leaveTopics", SQL.leaveTopics), ("countOtherTopics", SQL.countOtherTopics),
    ("topicsByName", SQL.topicsByName), ("groupByName", SQL.groupByName), ("groupByKey", SQL.groupByKey),
    ("groupsOfDevice", SQL.groupsOfDevice), ("devicesWithApp", SQL.devicesWithApp), ("aliasTarget", SQL.aliasTarget),
    ("rowByToken", SQL.rowByToken), ("topicPage", SQL.topicPage), ("userPage", SQL.userPage), ("memberIDs", SQL.memberIDs),
    ("appDeviceIDs", SQL.appDeviceIDs), ("devicesByID", SQL.devicesByID), ("highestDevice", SQL.highestDevice),
    ("sampleMembers", SQL.sampleMembers), ("sampleApp", SQL.sampleApp), ("sampleUser", SQL.sampleUser),
    ("recordsOfApp", SQL.recordsOfApp), ("topicsOfDevice", SQL.topicsOfDevice), ("goneDevices", SQL.goneDevices),
    ("counterByNumber", SQL.counterByNumber.statement), ("counterByToken", SQL.counterByToken.statement),
    ("badge", SQL.badge.statement),
    ("requestByName", SQL.requestByName.statement), ("pageByDigest", SQL.pageByDigest.statement),
    ("campaignByID", SQL.campaignByID), ("loadPage", SQL.loadPage),
  ]
}
