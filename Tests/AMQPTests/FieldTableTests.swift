import AMQP
import Testing

@Suite("Field tables")
struct FieldTableTests {
  private let all: FieldTable = [
    "t": .bool(true), "i": .integer(-5), "l": .integer(1 << 40), "d": .double(1.5), "D": .decimal(scale: 2, value: -314),
    "S": .text("text"), "x": .bytes([0, 255]), "T": .timestamp(1_732_137_600), "V": .void,
    "A": .array([.integer(1), .text("two"), .array([])]), "F": .table(["inner": .table([:])]),
  ]

  @Test("Every kind of value comes back as it was written")
  func roundTrip() {
    #expect(all["t"] == .bool(true) && all["i"] == .integer(-5) && all["l"] == .integer(1 << 40))
    #expect(all["d"] == .double(1.5) && all["D"] == .decimal(scale: 2, value: -314) && all["V"] == .void)
    #expect(all.string("S") == bytes("text") && all["x"] == .bytes([0, 255]) && all["T"] == .timestamp(1_732_137_600))
    #expect(all["A"] == .array([.integer(1), .text("two"), .array([])]) && all["F"] == .table(["inner": .table([:])]))
    #expect(all["missing"] == nil && all.string("i") == nil)
    #expect(all.entries.map(\.key) == ["t", "i", "l", "d", "D", "S", "x", "T", "V", "A", "F"].map(bytes))
  }

  @Test("Removing entries leaves the others as they were")
  func removing() {
    let table: FieldTable = ["a": .integer(1), "x-death": .array([.table(["count": .integer(3)])]), "b": .text("2")]
    #expect(table.removing(["x-death", "nothing"]) == ["a": .integer(1), "b": .text("2")])
    #expect(table.removing([]) == table)
    #expect(FieldTable().removing(["a"]).isEmpty)
  }
}

@Suite("A packed delivery")
struct PackedDeliveryTests {
  @Test("is the same delivery when it is unpacked", arguments: [true, false])
  func sameAgain(hasAll: Bool) {
    var delivery = Delivery()
    delivery.consumer = 3
    delivery.token = DeliveryToken(generation: 2, tag: 1 << 40)
    delivery.body = Array("{}".utf8)
    delivery.bodySize = 2
    if hasAll {
      delivery.redelivered = true
      delivery.exchange = Array("push.send".utf8)
      delivery.routingKey = Array("normal".utf8)
      delivery.properties.contentType = Array("application/json".utf8)
      delivery.properties.appID = Array("a".utf8)
      delivery.properties.messageID = []
      delivery.properties.timestamp = .max
      delivery.properties.deliveryMode = 2
      delivery.properties.headers.append("x-push-sender", .text("1"))
      delivery.properties.hasUnreadableHeaders = true
      delivery.properties.omittedHeaders = 131_000
      delivery.bodySize = 1 << 40
    }
    let packed = PackedDelivery(delivery)
    let again = packed.delivery
    #expect(packed.count > 2 && again.body == delivery.body && again.properties == delivery.properties)
    #expect(again.token == delivery.token && again.consumer == 3 && again.redelivered == hasAll)
    #expect(
      again.exchange == delivery.exchange && again.routingKey == delivery.routingKey && again.bodySize == delivery.bodySize)
  }
}
