import PushCore

/// The content of a registration or notification key: the record's number, and a random number that prevents guessing.
struct RegistryKey: Hashable {
  let id: Int64
  let salt: Int64

  var registration: [UInt8] {
    RegistryID.make(.registration, high: UInt64(bitPattern: id), low: UInt64(bitPattern: salt))
  }
  var notificationKey: [UInt8] { RegistryID.make(.group, high: UInt64(bitPattern: id), low: UInt64(bitPattern: salt)) }
}

extension RegistryKey {
  /// Parses a text in the form of an issued id; nil if the form is wrong.
  init?(_ text: [UInt8], _ kind: RegistryID.Kind) {
    guard RegistryID.kind(of: text) == kind else { return nil }
    let bits = text.dropFirst(RegistryID.prefixLength).reduce(UInt128(0)) { $0 << 5 | UInt128(RegistryID.values[Int($1)]) }
    id = Int64(bitPattern: UInt64(truncatingIfNeeded: bits >> 64))
    salt = Int64(bitPattern: UInt64(truncatingIfNeeded: bits))
  }
}
