import AMQP
import Broker
import DeviceRegistry
import Glibc
import PushCore
import Testing
import Wire

@testable import Delivery
@testable import pushfleet

@Suite("What the doctor says to do")
struct DoctorMachineTests {
  @Test("about a registry, by what is wrong with it")
  func registry() {
    let file = "/var/lib/pushfleet/registry.db"
    let readOnly = DoctorMachine.remedy(for: .unavailable(.readOnly, ""), file: file, user: "push")
    #expect(readOnly.level == .error)
    #expect(readOnly.words == "make \(file) and its folder writable for the user push: the folder too, for the -wal file")
    let standby = DoctorMachine.remedy(for: .unavailable(.readOnly, ""), file: nil, user: "push")
    #expect(standby.level == .error && standby.words?.contains("primary") == true)
    #expect(
      DoctorMachine.remedy(for: .unavailable(.down, ""), file: file, user: "push").words?.contains("the user push") == true)
    let down = DoctorMachine.remedy(for: .unavailable(.down, ""), file: nil, user: "push")
    #expect(down.level == .unreachable && down.words?.contains("password") == true)
    #expect(DoctorMachine.remedy(for: .unavailable(.full, ""), file: file, user: "push").words?.contains("free space") == true)
    #expect(DoctorMachine.remedy(for: .unusable(.corrupt, ""), file: file, user: "push").words == nil)
  }

  @Test("about too few open files and a disk that is nearly full")
  func machine() {
    let few = DoctorMachine.descriptors(limit: 30, needed: 36)
    #expect(few.level == .error && few.sentence.contains("30") && few.remedy?.contains("LimitNOFILE") == true)
    #expect(DoctorMachine.descriptors(limit: 1_024, needed: 36).level == .ok)
    #expect(DoctorMachine.disk(free: 2 << 30, "/x").level == .ok)
    #expect(DoctorMachine.disk(free: 500 << 20, "/x").level == .warning)
    #expect(DoctorMachine.disk(free: 0, "/x").level == .error && DoctorMachine.disk(free: 0, "/x").remedy != nil)
  }

  // The kernel lists them on several pages, in no order.
  @Test("about a port in use: the program's name, among many listening sockets")
  func listeners() throws {
    let sockets = (0..<200).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0) }
    defer { for socket in sockets { close(socket) } }
    for socket in sockets {
      try #require(listen(socket, 1) == 0)
      var address = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let found = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
      }
      try #require(found == 0)
      #expect(DoctorMachine.listener(on: UInt16(bigEndian: address.sin_port)) == DoctorMachine.program)
    }
  }

  @Test("about permissions: a line to type")
  func permissions() {
    let broker = BrokerURI(host: "h", virtualHost: "a'b", user: "me")
    #expect(
      BrokerRights.grant("push", broker)
        == #"`rabbitmqctl set_permissions -p 'a'\''b' 'me' '^push\..*' '^(push\..*|amq\.default)$' '^push\..*'`"#)
    let rights = BrokerRights(topology: Topology(prefix: "push", ladder: []), broker: broker)
    #expect(rights.advice == "if workers use this user: " + rights.grant)
  }

  @Test("about providers: each word of theirs that stops a credential has a remedy and a section of the runbook")
  func providers() {
    let stopping = (APNsReply.rows + FCMReply.errorCodeRows + FCMReply.statusWordRows).filter {
      if case .credential = $0.reaction { true } else { false }
    }
    for row in stopping {
      let remedy = ProviderRemedy.of(row.reason, isCredentialRefused: true)
      #expect(!remedy.words.isEmpty && remedy.section.hasSuffix("#pushfleetcredentialrefused"), "\(row.reason)")
    }
    #expect(
      ProviderRemedy.of("connection refused", isCredentialRefused: false).section.hasSuffix("#pushfleetproviderintrouble"))
  }

  @Test("times that begin in a whole second tell no more than that")
  func latencies() throws {
    var times = PushTimes()
    times.answered(.apns, .high, after: 0.4, isExact: false)
    times.answered(.apns, .normal, after: 0.004, isExact: true)
    func row(_ lane: PushCounts.Lane) -> FleetLatencies.Row {
      .init(name: "x", histogram: times.publishToAnswer(.apns, lane), isExact: times.wholeSeconds(.apns, lane) == 0)
    }
    #expect(row(.high).text(0.5) == "< 1 s" && row(.high).text(0.99) == "< 1 s")
    #expect(row(.normal).text(0.5).hasSuffix(" ms"))
    times.answered(.apns, .high, after: 2.4, isExact: false)
    #expect(row(.high).text(0.99) == "3 s")
    // The value of RabbitMQ's interceptor is believed within the second that the timestamp names.
    for (value, expected) in [(5_000, 5_000), (5_999, 5_999), (6_000, nil), (4_999, nil), (Int64.min, nil)] as [(Int64, Int64?)]
    {
      #expect(Intake.milliseconds(["timestamp_in_ms": .integer(value)], within: 5_000) == expected)
    }
    #expect(Intake.milliseconds(["timestamp_in_ms": .text("5000")], within: 5_000) == nil)
  }
}
