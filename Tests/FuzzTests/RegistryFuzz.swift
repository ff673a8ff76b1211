@testable import DeviceRegistry

/// A change is read or refused with a reason; rows and lines are the same however the bytes are cut.
enum RegistryFuzz {
  static func run(_ input: inout Input) throws(Violation) {
    let choices = input.byte()
    let bytes = input.remainder()
    switch choices % 3 {
    case 0: try change(bytes, hasDefault: choices & 8 == 0)
    case 1: try rows(bytes, cut: Int(choices >> 2) + 1)
    default: try lines(bytes, cut: Int(choices >> 2) + 1)
    }
  }

  private static func change(_ bytes: [UInt8], hasDefault: Bool) throws(Violation) {
    var limits = RegistryLimits()
    limits.batch = 8
    limits.topicsPerDevice = 4
    switch RegistryChange.parse(bytes, defaultApp: hasDefault ? Array("com.example.app".utf8) : nil, limits: limits) {
    case .failure(let refusal): try require(!refusal.reason.isEmpty, "refused with \(refusal.code) and no reason")
    case .success(let change):
      try require(!change.app.isEmpty, "a change of no app")
      if case .register(let registration) = change {
        try require(!registration.token.isEmpty, "a registration of no token")
        try require(registration.topics.count <= limits.topicsPerDevice, "\(registration.topics.count) topics")
      }
    }
  }

  private static func rows(_ bytes: [UInt8], cut: Int) throws(Violation) {
    let whole = rows(pieces: [bytes[...]])
    let cutUp = rows(pieces: pieces(bytes, cut))
    try require(whole == cutUp, "rows in pieces of \(cut) are others: \(cutUp), whole: \(whole)")
  }

  private static func rows(pieces: [ArraySlice<UInt8>]) -> [String] {
    var csv = CSVRows()
    var told: [String] = []
    func take(isEnd: Bool) {
      while let (line, row) = csv.next(isEnd: isEnd) {
        switch row {
        case .fields(let fields): told.append("\(line): \(fields)")
        case .broken(let why): told.append("\(line): \(why)")
        }
      }
    }
    for piece in pieces {
      csv.append(piece)
      take(isEnd: false)
    }
    take(isEnd: true)
    return told
  }

  private static func lines(_ bytes: [UInt8], cut: Int) throws(Violation) {
    let whole = lines(pieces: [bytes[...]])
    let cutUp = lines(pieces: pieces(bytes, cut))
    try require(whole == cutUp, "lines in pieces of \(cut) are others: \(cutUp), whole: \(whole)")
  }

  private static func lines(pieces: [ArraySlice<UInt8>]) -> [String] {
    var reader = LineReader()
    var told: [String] = []
    for piece in pieces {
      reader.append(piece)
      while let (line, text) = reader.next(isEnd: false) { told.append("\(line): \(text ?? [])") }
    }
    while let (line, text) = reader.next(isEnd: true) { told.append("\(line): \(text ?? [])") }
    return told
  }

  private static func pieces(_ bytes: [UInt8], _ size: Int) -> [ArraySlice<UInt8>] {
    stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
  }
}
