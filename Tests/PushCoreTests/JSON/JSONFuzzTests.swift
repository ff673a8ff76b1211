import Foundation
import PushCore
import Testing

@Suite struct JSONFuzzTests {
  /// Pieces that break parsers, put between and over bytes of valid requests.
  static let pieces: [[UInt8]] =
    [
      "\"", "\\", "{", "}", "[", "]", ",", ":", "\\u", "\\uD800", "\\u0000", "1e999", "-", "0", "null", "true", "to", "\u{0}",
      "\n", "é", "\u{202E}", "[[[[", "]]]]", "\"to\":", "\"data\":{", "99999999999999999999", "/topics/", "-0.0",
      "\"message\":",
    ].map { Array($0.utf8) } + [[0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xFF], [0xEF, 0xBB, 0xBF]]

  static func mutate(_ body: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var body = body
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      guard !body.isEmpty else { return body }
      let at = Int.random(in: 0..<body.count, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: body[at] = UInt8.random(in: 0...255, using: &random)
      case 1: body.remove(at: at)
      case 2: body.insert(contentsOf: pieces.randomElement(using: &random)!, at: at)
      case 3: body.removeSubrange(at..<min(body.count, at + Int.random(in: 1...40, using: &random)))
      case 4: body.insert(contentsOf: body[at..<min(body.count, at + 30)], at: Int.random(in: 0...body.count, using: &random))
      default: body[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      }
    }
    return body
  }

  @Test(
    "20,000 mutated requests never trap, and an accepted one is written with the same meaning", arguments: [1, 2])
  func mutations(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var seeds = try requestFixtures().map(\.body)
    seeds.append(Array(fcmV1Request.utf8))
    var accepted = 0
    for _ in 0..<10_000 {
      let body = Self.mutate(seeds.randomElement(using: &random)!, &random)
      guard let text = try? JSONDocument(body) else {
        guard case .failure(let rejection) = SendRequest.parse(body) else {
          Issue.record("accepted, though not JSON: \(String(decoding: body, as: UTF8.self))")
          continue
        }
        #expect(rejection.code == .invalidJSON)
        continue
      }
      let compact = emitted(text)
      let again = try JSONDocument(compact)
      #expect(emitted(again) == compact)
      #expect(text.compactCount(0) == compact.count)
      switch (SendRequest.parse(body), SendRequest.parse(compact)) {
      case (.success(let one), .success(let other)):
        accepted += 1
        #expect(one.targets == other.targets)
        #expect(one.timeToLive == other.timeToLive)
        #expect(one.notification[.title].map(one.document.string) == other.notification[.title].map(other.document.string))
      case (.failure(let one), .failure(let other)): #expect(one.code == other.code)
      default: Issue.record("accepted in one form only: \(String(decoding: body, as: UTF8.self))")
      }
    }
    #expect(accepted > 100)
  }

  @Test("the documents of the standard parser and of ours are the same", arguments: [11, 12, 13])
  func sameAsFoundation(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<400 {
      let source = Self.value(depth: 0, &random)
      let text = try document(source)
      let expected = try JSONSerialization.jsonObject(with: Data(source.utf8), options: .fragmentsAllowed)
      #expect(Self.same(text, 0, expected), "\(source)")
      let rewritten = try JSONSerialization.jsonObject(with: Data(emitted(text)), options: .fragmentsAllowed)
      #expect(Self.same(text, 0, rewritten), "\(source)")
    }
  }

  @Test("what the standard parser refuses, ours refuses too")
  func noLaxerThanFoundation() throws {
    var random = SeededGenerator(seed: 21)
    for _ in 0..<3_000 {
      let body = Self.mutate(Array(Self.value(depth: 0, &random).utf8), &random)
      guard fault(body) == nil else { continue }
      // Numbers beyond a double's range are copied as text, which the standard reader can't do.
      let hasHugeNumber = body.contains(UInt8(ascii: "e")) || body.contains(UInt8(ascii: "E"))
      let foundation = try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)
      #expect(foundation != nil || hasHugeNumber, "\(String(decoding: body, as: UTF8.self))")
    }
  }

  /// A random JSON text with random white space and random escapes.
  static func value(depth: Int, _ random: inout SeededGenerator) -> String {
    let space = [" ", "", "", "\n", "\t "].randomElement(using: &random)!
    let text: String
    switch Int.random(in: 0..<(depth < 5 ? 9 : 6), using: &random) {
    case 0: text = ["null", "true", "false"].randomElement(using: &random)!
    case 1: text = String(Int64.random(in: -1_000_000...1_000_000, using: &random))
    case 2:
      text =
        "\(Int.random(in: -99...99, using: &random)).\(Int.random(in: 0...999, using: &random))e\(Int.random(in: -9...9, using: &random))"
    case 3, 4, 5: text = string(&random)
    case 6:
      text =
        "[" + (0..<Int.random(in: 0..<5, using: &random)).map { _ in value(depth: depth + 1, &random) }.joined(separator: ",")
        + "]"
    default:
      let members = (0..<Int.random(in: 0..<20, using: &random)).map { index in
        "\"\(index)\(string(&random).dropFirst()):" + value(depth: depth + 1, &random)
      }
      text = "{" + members.joined(separator: ",") + "}"
    }
    return space + text + space
  }

  private static func string(_ random: inout SeededGenerator) -> String {
    let letters = [
      "a", "Z", " ", "é", "雑", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\uD83D\\uDE00", "\\u0001", "\u{7F}", "{", "]",
    ]
    return "\"" + (0..<Int.random(in: 0..<8, using: &random)).map { _ in letters.randomElement(using: &random)! }.joined()
      + "\""
  }

  private static func same(_ text: JSONDocument, _ node: Int, _ other: Any) -> Bool {
    switch text.kind(node) {
    case .null: return other is NSNull
    case .true, .false: return other as? Bool == text.bool(node)
    case .number: return (other as? NSNumber)?.doubleValue == text.double(node)
    case .string: return (other as? String).map { Array($0.utf8) } == text.string(node)
    case .array:
      guard let array = other as? [Any], array.count == text.count(node) else { return false }
      return zip(text.elements(of: node), array).allSatisfy { same(text, $0, $1) }
    case .object:
      guard let object = other as? [String: Any], object.count == text.count(node) else { return false }
      return text.members(of: node).allSatisfy { member in
        object[text.text(member.name)].map { same(text, member.value, $0) } ?? false
      }
    }
  }
}
