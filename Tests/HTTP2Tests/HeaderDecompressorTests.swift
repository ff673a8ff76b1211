import MachineDriver
import TestSupport
import Testing
import Wire

@testable import HTTP2

@Suite struct HeaderDecompressorTests {
  struct Field: Equatable {
    var name: ResponseFieldName
    var value: String
    var size: Int
  }

  private func read(_ block: [UInt8], _ decompressor: inout HeaderDecompressor) -> Result<[Field], ConnectionFault> {
    var fields: [Field] = []
    do throws(ConnectionFault) {
      try decompressor.read(block.span.bytes, into: &fields) { fields, name, value, size in
        var bytes: [UInt8] = []
        value.append(0..<value.byteCount, to: &bytes)
        fields.append(Field(name: name, value: name == .other ? "" : String(decoding: bytes, as: UTF8.self), size: size))
      }
    } catch { return .failure(error) }
    return .success(fields)
  }

  private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.filter { $0 != " " }.map { UInt8(String($0), radix: 16)! }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  // With a table of 256 bytes, which evicts.
  @Test(
    "The examples of RFC 7541, with and without Huffman coding",
    arguments: [
      // Appendix C.5
      [
        "3fe101 48 03 333032 58 07 70726976617465 61 1d 4d6f6e2c203231204f637420323031332032303a31333a323120474d54 6e 17 68747470733a2f2f7777772e6578616d706c652e636f6d",
        "48 03 333037 c1 c0 bf",
        "88 c1 61 1d 4d6f6e2c203231204f637420323031332032303a31333a323220474d54 c0 5a 04 677a6970 77 38 666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
      ],
      // Appendix C.6
      [
        "3fe101 48 82 6402 58 85 aec3771a4b 61 96 d07abe941054d444a8200595040b8166e082a62d1bff 6e 91 9d29ad171863c78f0b97c8e9ae82ae43d3",
        "48 83 640eff c1 c0 bf",
        "88 c1 61 96 d07abe941054d444a8200595040b8166e084a62d1bff c0 5a 83 9bd9ab 77 ad 94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
      ],
    ])
  func examples(_ blocks: [String]) throws {
    var decompressor = HeaderDecompressor(keeping: ["cache-control", "date", "set-cookie"])
    let first = try read(bytes(blocks[0]), &decompressor).get()
    func field(_ name: ResponseFieldName, _ value: String, _ size: Int) -> Field { Field(name: name, value: value, size: size) }
    let (control, date, cookie) = (
      ResponseFieldName.kept(0), ResponseFieldName.kept(1), ResponseFieldName.kept(2)
    )
    #expect(
      first == [
        field(.status, "302", 42), field(control, "private", 52), field(date, "Mon, 21 Oct 2013 20:13:21 GMT", 65),
        field(.other, "", 63),
      ])
    #expect(
      try read(bytes(blocks[1]), &decompressor).get() == [
        field(.status, "307", 42), field(control, "private", 52), field(date, "Mon, 21 Oct 2013 20:13:21 GMT", 65),
        field(.other, "", 63),
      ])
    #expect(
      try read(bytes(blocks[2]), &decompressor).get() == [
        field(.status, "200", 42), field(control, "private", 52), field(date, "Mon, 21 Oct 2013 20:13:22 GMT", 65),
        field(.other, "", 63), field(.other, "", 52),
        field(cookie, "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1", 98),
      ])
  }

  @Test("Values that nghttp2 compresses arrive as they were sent, whatever they are, from tables that evict", arguments: 0..<20)
  func compressedByNghttp2(_ seed: UInt64) {
    let talk = Conversation(client: .with { $0.keptResponseHeaders = ["apns-id", "retry-after", "x-long-name-of-a-header"] })
    var random = SeededGenerator(seed: seed)
    var sent: [Int: [[UInt8]]] = [:]
    talk.scripted.onRequest = { request, session in
      let values = (0..<3).map { _ in
        // Printable bytes and others, whose codes are longer.
        (0..<Int.random(in: 0...90, using: &random)).map { _ in
          UInt8.random(in: Bool.random(using: &random) ? 0x21...0x7e : 0x80...0xff, using: &random)
        }
      }
      sent[Int(request.stream) / 2] = values
      session.respond(
        request.stream, status: [200, 410, 429, 503].randomElement(using: &random)!,
        headers: [
          HeaderField("date", "\(random.next() as UInt64)"), HeaderField(name: Array("apns-id".utf8), value: values[0]),
          HeaderField("server", "s"), HeaderField(name: Array("retry-after".utf8), value: values[1]),
          HeaderField(name: Array("x-long-name-of-a-header".utf8), value: values[2]),
        ])
    }
    talk.pair.open()
    for tag in 0..<200 {
      talk.submit(tag)
      talk.pair.exchange()
      for index in 0..<3 { #expect(talk.recorder.answers[tag]?.header(index) == sent[tag]?[index]) }
    }
  }

  @Test("Blocks of any bytes are valid for the decompressor if they are for nghttp2", arguments: 0..<40)
  func validity(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (valid, invalid) = (0, 0)
    for _ in 0..<100 {
      let block = Self.randomBlock(&random)
      var decompressor = HeaderDecompressor(keeping: ["apns-id"])
      let result = read(block, &decompressor)
      let isValid = if case .success = result { true } else { false }
      #expect(isValid == Self.isValidForNghttp2(block), "\(block.hexText)")
      if isValid { valid += 1 } else { invalid += 1 }
    }
    #expect(valid > 10 && invalid > 10)
  }

  @Test("A connection doesn't keep the storage of a large string")
  func largeString() throws {
    var decompressor = HeaderDecompressor(keeping: [])
    // A name of one byte, and a value of 127 + 5,000 bytes.
    let block: [UInt8] = [0, 1, 0x78, 0x7f, 0x88, 0x27] + [UInt8](repeating: 0x61, count: 5127)
    let fields = try read(block, &decompressor).get()
    #expect(fields.map(\.size) == [5160])
    #expect(decompressor.text.capacity <= 1024)
  }

  /// Fields of all representations, with strings of random bits; some are cut off.
  private static func randomBlock(_ random: inout SeededGenerator) -> [UInt8] {
    func string() -> [UInt8] {
      let text = (0..<Int.random(in: 0...6, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      // With padding in most cases.
      let isCoded = Bool.random(using: &random)
      return [(isCoded ? 0x80 : 0) | UInt8(text.count + (isCoded ? 1 : 0))] + text
        + (isCoded ? [[0xff, 0x7f, 0x1f, 0x07].randomElement(using: &random)!] : [])
    }
    let hasLimit = Int.random(in: 0..<6, using: &random) == 0
    var block: [UInt8] = hasLimit ? [0x3f, UInt8.random(in: 0...255, using: &random), 0x1f] : []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      switch Int.random(in: 0..<5, using: &random) {
      case 0: block.append(0x80 | UInt8.random(in: 0...70, using: &random))
      case 1: block += [0x40] + string() + string()
      case 2: block += [0x40 | UInt8.random(in: 1...62, using: &random)] + string()
      case 3: block += [UInt8.random(in: 0...14, using: &random)] + string() + (Bool.random(using: &random) ? string() : [])
      default: block += [0x1f, UInt8.random(in: 0...60, using: &random)] + string()
      }
    }
    return Int.random(in: 0..<8, using: &random) == 0 ? block.dropLast() : block
  }

  /// nghttp2's server ends a connection with an invalid block by a GOAWAY with COMPRESSION_ERROR.
  private static func isValidForNghttp2(_ block: [UInt8]) -> Bool {
    let server = ServerSession(configuration: .init(), handler: ScriptedServer())
    let driver = MachineDriver(server)
    let now = MonotonicTime(nanoseconds: 0)
    driver.open(at: now)
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + emptySettings
    driver.receive(preface + frame(1, flags: 5, stream: 1, block), at: now)
    // Length, type, flags and stream of a GOAWAY; the last stream, and the code.
    return driver.collect(at: now).ranges(of: [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9]).isEmpty
  }
}
