import TestSupport
import Testing

@testable import HTTP2

/// nghttp2's server, which shares no code with the compressor, reads what it writes.
@Suite struct HeaderCompressorTests {
  private let template = HeaderTemplate(
    constant: [(":method", "POST"), (":scheme", "https"), (":authority", "push.test"), ("content-type", "application/json")],
    variable: [":path", "authorization", "apns-topic", "apns-priority", "apns-id", "apns-collapse-id"],
    unindexed: [":path", "authorization", "apns-id", "apns-collapse-id"])

  private func values(_ texts: [String?]) -> HeaderValues {
    var values = HeaderValues()
    for text in texts { if let text { values.append(Array(text.utf8)) } else { values.appendAbsent() } }
    return values
  }

  private func submit(_ texts: [String?], of template: HeaderTemplate, tag: Int, on client: ClientSession) {
    var values = values(texts)
    client.submit(template, body: [0x7B, 0x7D], tag: tag, &values)
    #expect(values.count == 0 && values.bytes.isEmpty)
  }

  @Test(
    "Every request's headers arrive as they were given, whatever table the server allows",
    arguments: [0, 40, 100, 300, 4096, 65536])
  func roundTrips(_ tableSize: Int) {
    let talk = Conversation(server: .with { $0.headerTableSize = tableSize })
    talk.pair.open()
    var random = SeededGenerator(seed: UInt64(tableSize) + 1)
    var expected: [[String]] = []
    for tag in 0..<600 {
      let texts: [String?] = [
        "/3/device/\(random.next() as UInt64)", "bearer \(tag / 100)",
        "com.example.app\(Int.random(in: 0..<12, using: &random))",
        ["1", "5", "10"].randomElement(using: &random), "id-\(tag)",
        tag % 3 == 0 ? nil : String(repeating: "c", count: Int.random(in: 1...200, using: &random)),
      ]
      expected.append(texts.compactMap { $0 })
      submit(texts, of: template, tag: tag, on: talk.client)
      if tag % 7 == 6 { talk.pair.exchange() }
    }
    talk.pair.exchange()
    #expect(talk.scripted.violations.isEmpty)
    #expect(talk.recorder.answers.count == 600)
    let seen = talk.scripted.requests.sorted { $0.stream < $1.stream }
    for (request, texts) in zip(seen, expected) {
      let headers = request.headers.map { String(decoding: $0.value, as: UTF8.self) }
      #expect(headers == ["POST", "https", "push.test", texts[0], "application/json"] + texts.dropFirst())
    }
  }

  @Test(
    "Requests of templates with fixed values arrive whole among others, whatever table the server allows",
    arguments: [0, 100, 200, 4096])
  func fixedValues(_ tableSize: Int) {
    let talk = Conversation(server: .with { $0.headerTableSize = tableSize })
    talk.pair.open()
    var random = SeededGenerator(seed: UInt64(tableSize) + 7)
    let common: [[String?]] = (0..<4).map { ["", "bearer \($0)", "com.example.app\($0)", "5", "", $0 % 2 == 0 ? nil : "c"] }
    let fixed = common.map { HeaderTemplate(template, fixing: values($0), varying: [0, 4]) }
    var expected: [[String]] = []
    for tag in 0..<600 {
      let kind = Int.random(in: 0..<4, using: &random)
      let (path, id) = ("/3/device/\(random.next() as UInt64)", "id-\(tag)")
      if Bool.random(using: &random) {
        submit([path, id], of: fixed[kind], tag: tag, on: talk.client)
      } else {
        submit([path] + common[kind][1...3] + [id, common[kind][5]], of: template, tag: tag, on: talk.client)
      }
      expected.append(
        [path, "application/json"] + common[kind][1...3].compactMap { $0 } + [id] + [common[kind][5]].compactMap { $0 })
      if tag % 5 == 4 { talk.pair.exchange() }
    }
    talk.pair.exchange()
    #expect(talk.scripted.violations.isEmpty)
    #expect(talk.recorder.answers.count == 600)
    let seen = talk.scripted.requests.sorted { $0.stream < $1.stream }
    for (request, texts) in zip(seen, expected) {
      #expect(request.headers.map { String(decoding: $0.value, as: UTF8.self) } == ["POST", "https", "push.test"] + texts)
    }
  }

  @Test("Of a template with fixed values, only what differs is more than a byte a field")
  func fixedSize() {
    var compressor = HeaderCompressor()
    let fixed = HeaderTemplate(
      template, fixing: values(["", "bearer t", "com.example.app", "10", "", nil]), varying: [0, 4])
    var block: [UInt8] = []
    for (path, id) in [("/3/device/ab", "id-1"), ("/3/device/cd", "id-2")] {
      block = []
      var values = values([path, id])
      compressor.append(fixed, &values, to: &block)
    }
    #expect(block.count == 6 + (2 + 12) + (3 + 8) + (3 + 4))
  }

  @Test("Values of any length arrive in blocks that repeat the one before")
  func repetition() {
    let talk = Conversation(server: .with { $0.maxHeaderListSize = 200_000 })
    talk.pair.open()
    let fixed = HeaderTemplate(
      template, fixing: values(["", "bearer t", "com.example.app", "10", "", nil]), varying: [0, 4])
    let lengths = [1, 5, 126, 127, 128, 254, 255, 256, 300, 16_500, 3, 0, 1]
    for (tag, length) in lengths.enumerated() {
      submit(["/3/device/\(tag)", String(repeating: "i", count: length)], of: fixed, tag: tag, on: talk.client)
    }
    talk.pair.exchange()
    let seen = talk.scripted.requests.sorted { $0.stream < $1.stream }
    #expect(seen.map { $0.header("apns-id")?.count } == lengths)
    #expect(seen.indices.allSatisfy { seen[$0].header(":path") == Array("/3/device/\($0)".utf8) })
  }

  @Test("What repeats takes one byte a field from the second request on; what differs is copied once")
  func sizes() {
    var compressor = HeaderCompressor()
    var values = values(["/3/device/ab", "bearer t", "com.example.app", "10", "id-1", nil])
    var first: [UInt8] = []
    compressor.append(template, &values, to: &first)
    var second: [UInt8] = []
    compressor.append(template, &values, to: &second)
    // POST, https, authority, content type, topic, priority; then path, token and id: name index, length, bytes. The prefix of
    // `authorization`, 23, takes two bytes.
    #expect(second.count == 6 + (2 + 12) + (3 + 8) + (3 + 4))
    #expect(first.count > second.count)
    #expect(second[0] == 0x83)
    #expect(second.contains(0x1F))
  }

  @Test("A smaller table is announced with the next block, a detour through zero as well")
  func tableUpdates() {
    var compressor = HeaderCompressor()
    var values = values(["/", "t", "a", "5", "i", nil])
    var block: [UInt8] = []
    compressor.append(template, &values, to: &block)
    compressor.setTableLimit(0)
    compressor.setTableLimit(4096)
    block = []
    compressor.append(template, &values, to: &block)
    #expect(block.prefix(4) == [0x20, 0x3F, 0xE1, 0x1F])
    compressor.setTableLimit(65536)
    block = []
    compressor.append(template, &values, to: &block)
    #expect(block.first == 0x83)
  }

  @Test("A header block beyond one frame continues in the next ones", arguments: [16_300, 16_384, 40_000, 60_000])
  func continuation(_ size: Int) {
    let talk = Conversation(server: .with { $0.maxHeaderListSize = 200_000 })
    talk.pair.open()
    let token = String(repeating: "x", count: size)
    submit(["/", token, "a", "5", "i", nil], of: template, tag: 1, on: talk.client)
    talk.submit(2)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 2)
    #expect(talk.scripted.requests.first { $0.stream == 1 }?.header("authorization")?.count == size)
  }

  @Test(
    "Decimal values are spelled as Swift spells them", arguments: [0, 5, 10, 1_732_137_600, Int64.max, Int64.min, -1, 99, 100])
  func decimals(_ number: Int64) {
    var values = HeaderValues()
    values.append(decimal: number)
    #expect(values.bytes == Array(String(number).utf8))
  }
}
