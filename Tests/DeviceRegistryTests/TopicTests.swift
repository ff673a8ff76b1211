import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Topics and conditions on both databases")
struct TopicTests {
  @Test("Subscribing answers for each token, in order", arguments: Backend.all)
  func subscribes(_ backend: Backend) throws {
    let registry = try backend.open()
    let id = try registry.register("t1")
    _ = try registry.register("t2")
    let answer = try registry.change(
      #"{"op":"subscribe","topic":"news","tokens":["\#(text(id))","unknown","t2","not a token","t1"]}"#)
    #expect(answer == .results([nil, .notFound, nil, .invalidArgument, nil]))
    #expect(
      text(answer.json) == #"{"results":[{},{"error":"NOT_FOUND"},{},{"error":"INVALID_ARGUMENT"},{}]}"#)
    #expect(try registry.topic("news") == ["t1", "t2"])
    let removal = try registry.change(#"{"op":"unsubscribe","topic":"/topics/news","tokens":["t1","unknown"]}"#)
    #expect(removal == .results([nil, .notFound]))
    #expect(try registry.topic("news") == ["t2"])
    #expect(
      try registry.store.topics(app: TestRegistry.app, after: [], limit: 9) == [
        TopicRecord(name: Array("news".utf8), members: 1)
      ])
  }

  @Test("A member that is gone isn't counted", arguments: Backend.all)
  func goneMembers(_ backend: Backend) throws {
    let registry = try backend.open()
    for token in ["t1", "t2", "t3"] { _ = try registry.register(token, #""topics":["news"]"#) }
    _ = try registry.mark("t1", .gone(since: 5_000))
    _ = try registry.mark("t2", .suspect)
    #expect(try registry.store.topics(app: TestRegistry.app, after: [], limit: 9).map(\.members) == [2])
  }

  @Test("A topic that never existed is unknown; one whose members have left is empty", arguments: Backend.all)
  func unknownAndEmpty(_ backend: Backend) throws {
    let registry = try backend.open()
    _ = try registry.register("t1", #""topics":["left"]"#)
    _ = try registry.change(#"{"op":"unsubscribe","topic":"left","tokens":["t1"]}"#)
    let left = try registry.store.survey(.topic(Array("left".utf8)), app: TestRegistry.app)
    #expect(left.exists && left.estimate == 0)
    #expect(try registry.store.survey(.topic(Array("never".utf8)), app: TestRegistry.app).exists == false)
    #expect(try registry.store.survey(.topic(Array("left".utf8)), app: Array("other".utf8)).exists == false)
    #expect(try registry.topic("never").isEmpty)
  }

  @Test("A device has at most as many topics as the limit says", arguments: Backend.all)
  func limit(_ backend: Backend) throws {
    var limits = RegistryLimits()
    limits.topicsPerDevice = 3
    let registry = try backend.open(limits)
    _ = try registry.register("t1", #""topics":["a","b","c"]"#)
    _ = try registry.register("t2")
    let answer = try registry.change(#"{"op":"subscribe","topic":"d","tokens":["t1","t2"]}"#)
    #expect(answer == .results([.tooManyTopics, nil]))
    #expect(try registry.change(#"{"op":"subscribe","topic":"a","tokens":["t1"]}"#) == .results([nil]))
    #expect(try registry.change(#"{"platform":"fcm","token":"t1","topics":["a","d"]}"#).isRefusal)
    #expect(!(try registry.change(#"{"platform":"fcm","token":"t1","topics":["a","b"]}"#).isRefusal))
    #expect(try registry.topic("d") == ["t2"])
  }

  @Test("More than 1,000 tokens in one change are refused", arguments: Backend.all)
  func batch(_ backend: Backend) throws {
    let registry = try backend.open()
    let tokens = (0...1000).map { #""t\#($0)""# }.joined(separator: ",")
    #expect(try registry.change(#"{"op":"subscribe","topic":"a","tokens":[\#(tokens)]}"#).isRefusal)
    #expect(try registry.change(#"{"op":"subscribe","topic":"a","tokens":[]}"#).isRefusal)
  }

  /// Devices named after the topics they are in.
  private func filled(_ backend: Backend) throws -> TestRegistry {
    let registry = try backend.open()
    for topics in ["", "a", "b", "ab", "c", "ac", "bc", "abc", "", "a", "b", "ab", "c", "ac", "bc", "abc"] {
      let list = topics.map { "\"\($0)\"" }.joined(separator: ",")
      _ = try registry.register("x\(topics)-\(UInt64.random(in: 0 ... .max))", #""topics":[\#(list)]"#)
    }
    return registry
  }

  @Test(
    "Conditions are evaluated strictly from left to right, each device once",
    arguments: Backend.all,
    [
      ("'a' in topics", "a ab ac abc"),
      ("'a' in topics && 'b' in topics", "ab abc"),
      ("'a' in topics || 'b' in topics && 'c' in topics", "ac bc abc"),
      ("'a' in topics || ('b' in topics && 'c' in topics)", "a ab ac bc abc"),
      ("!('a' in topics)", " b c bc"),
      ("'c' in topics && !('a' in topics)", "c bc"),
      ("'a' in topics && 'unknown' in topics", ""),
      ("'a' in topics || 'unknown' in topics", "a ab ac abc"),
    ])
  func conditions(_ backend: Backend, _ condition: (String, String)) throws {
    let registry = try filled(backend)
    let parsed = try Condition.parse(Array(condition.0.utf8))
    for pageSize in [1, 3, 100] {
      let found = try registry.tokens(.condition(parsed), pageSize: pageSize).map {
        String($0.dropFirst().prefix { $0 != "-" })
      }
      let wanted = condition.1.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      let both = condition.1.isEmpty ? [] : wanted + wanted
      #expect(found.sorted() == both.sorted())
    }
    let survey = try registry.store.survey(.condition(parsed), app: TestRegistry.app)
    #expect(survey.exists)
    #expect(survey.estimate >= Int64(condition.1.isEmpty ? 0 : 2 * condition.1.split(separator: " ").count))
  }

  @Test("A condition whose topics never existed is unknown", arguments: Backend.all)
  func unknownCondition(_ backend: Backend) throws {
    let registry = try filled(backend)
    let parsed = try Condition.parse(Array("'x' in topics || 'y' in topics".utf8))
    #expect(try registry.store.survey(.condition(parsed), app: TestRegistry.app).exists == false)
  }

  @Test("A device that stays is on exactly one page while others come and go", arguments: Backend.all)
  func stableCursor(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = try registry.another()
    var generator = SeededGenerator(seed: 7)
    let audiences: [Audience] = [
      .topic(Array("news".utf8)), .condition(try Condition.parse(Array("'news' in topics && !('out' in topics)".utf8))),
    ]
    _ = try registry.change(#"{"platform":"fcm","token":"first","topics":["news","out"]}"#)
    for index in 0..<60 { _ = try registry.register("stay\(index)", #""topics":["news"]"#) }
    for index in 0..<60 { _ = try registry.register("leave\(index)", #""topics":["news"]"#) }
    for audience in audiences {
      let highWater = try registry.store.survey(audience, app: TestRegistry.app).highWater
      var cursor: Int64 = 0
      var seen: [String] = []
      var round = 0
      while true {
        let page = try registry.store.page(
          of: audience, kind: .alert, app: TestRegistry.app, after: cursor, upTo: highWater, limit: 7)
        for index in 0..<page.devices.count { seen.append(text(page.devices.token(index))) }
        if page.isLast { break }
        cursor = page.next
        let token = "leave\(Int.random(in: 0..<60, using: &generator))"
        let leaving = RegistryChange.unregister(app: TestRegistry.app, .token(.fcm, Array(token.utf8)))
        var coming = Registration(app: TestRegistry.app, platform: .fcm, token: Array("late\(round)".utf8))
        coming.topics = [Array("news".utf8)]
        _ = try other.apply([leaving, .register(coming)], now: 2_000)
        round += 1
      }
      #expect(Set(seen).count == seen.count)
      #expect(seen.filter { $0.hasPrefix("stay") }.count == 60)
      if audience == audiences[0] { #expect(!seen.contains { $0.hasPrefix("late") }) }
    }
  }

  @Test("Gone devices are on no page, suspect ones are", arguments: Backend.all)
  func states(_ backend: Backend) throws {
    let registry = try backend.open()
    for index in 0..<10 { _ = try registry.register("t\(index)", #""topics":["news"]"#) }
    _ = try registry.store.mark(
      (0..<7).map {
        DeviceMark(
          app: TestRegistry.app, platform: .fcm, token: Array("t\($0)".utf8), verdict: .gone(since: 2_000),
          reason: Array("UNREGISTERED".utf8))
      } + [
        DeviceMark(app: TestRegistry.app, platform: .fcm, token: Array("t8".utf8), verdict: .suspect, reason: Array("x".utf8))
      ],
      now: 3_000)
    #expect(try registry.topic("news") == ["t7", "t8", "t9"])
  }
}
