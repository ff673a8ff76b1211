import DeviceRegistry
import Foundation
import TestSupport
import Testing

@Suite("pushfleet topics and groups")
struct TopicsAndGroupsTests {
  @Test("devices are subscribed and unsubscribed by token or registration, from words or standard input")
  func subscriptions() throws {
    let site = try RegistrySite()
    let registrations = try (1...3).map {
      try #require(try site.run(["devices", "register", "--platform", "apns", "--token", token($0)]).lines.first)
    }
    #expect(try site.run(["topics", "subscribe", "news", registrations[0], token(2)]).status == 0)
    #expect(try site.run(["topics", "subscribe", "sport", "-"], input: Array("\(token(3))\n\n".utf8)).status == 0)
    #expect(
      try site.run(["topics", "list"]).lines.map { $0.split(separator: " ") }
        == [["MEMBERS", "TOPIC"], ["2", "news"], ["1", "sport"]])
    #expect(try site.run(["topics", "unsubscribe", "/topics/news", token(2)]).status == 0)
    let members = try site.run(["topics", "list", "--json"]).objects
    #expect(members.map { $0["topic"] as? String } == ["news", "sport"])
    #expect(members.map { $0["members"] as? Int } == [1, 1])
  }

  @Test("2,500 devices at once are subscribed in batches; those that nobody registered are told by their place")
  func batches() throws {
    let site = try RegistrySite()
    let lines = (1...2_500).map { #"{"platform":"apns","token":"\#(token($0))"}"# }
    try site.run(["devices", "import", "-"], input: Array(lines.joined(separator: "\n").utf8))
    let tokens = (1...2_500).map { token($0 == 2_300 ? 9_999 : $0) }.joined(separator: "\n")
    let ended = try site.run(["topics", "subscribe", "news", "-", "--json"], input: Array(tokens.utf8))
    #expect(ended.status == 65)
    #expect(ended.errors.contains("device 2300: NOT_FOUND") && ended.errors.contains("1 of 2500 could not be subscribed"))
    #expect(ended.objects.map { ($0["results"] as? [Any])?.count } == [1_000, 1_000, 500])
    #expect(try site.run(["topics", "list", "--json"]).objects.first?["members"] as? Int == 2_499)
  }

  @Test("a group is made, shown, added to and emptied, by its name or its key")
  func groups() throws {
    let site = try RegistrySite()
    let registrations = try (1...2).map {
      try #require(try site.run(["devices", "register", "--platform", "apns", "--token", token($0)]).lines.first)
    }
    let key = try #require(try site.run(["groups", "create", "family", registrations[0]]).lines.first)
    #expect(key.hasPrefix("pf1g~"))
    let taken = try site.run(["groups", "create", "family", registrations[1], "--json"])
    #expect(taken.status == 65 && taken.objects.first?["error"] as? String == "notification_key already exists")
    #expect(try site.run(["groups", "add", "family", token(2)]).status == 0)
    for name in ["family", key] {
      let group = try #require(try site.run(["groups", "show", name, "--json"]).objects.first)
      #expect(group["notification_key"] as? String == key)
      #expect(group["registration_ids"] as? [String] == registrations)
    }
    #expect(try site.run(["groups", "show", "family"]).output.contains("devices           \(registrations[0])\n"))
    let partly = try site.run(["groups", "add", key, token(1), token(77)])
    #expect(partly.status == 65 && partly.errors.contains("member 2: no such device"))
    #expect(try site.run(["groups", "remove", key] + registrations).status == 0)
    #expect(try site.run(["groups", "show", "family"]).status == 65)
    #expect(try site.run(["groups", "add", "family", token(1)]).status == 65)
  }

  @Test("a group of users names users, who need no device yet")
  func userGroup() throws {
    let site = try RegistrySite()
    #expect(try site.run(["groups", "create", "staff", "--users"]).status == 0)
    #expect(try site.run(["groups", "add", "staff", "--users", "u1", "u2"]).status == 0)
    #expect(try site.run(["groups", "remove", "staff", "--users", "u1"]).status == 0)
    #expect(try site.run(["groups", "show", "staff", "--json"]).objects.first?["users"] as? [String] == ["u2"])
    let many = Array((0..<1_500).map { "m\($0)" }.joined(separator: "\n").utf8)
    #expect(try site.run(["groups", "create", "all", "--users", "-"], input: many).status == 0)
    #expect((try site.run(["groups", "show", "all", "--json"]).objects.first?["users"] as? [String])?.count == 1_500)
  }
}
