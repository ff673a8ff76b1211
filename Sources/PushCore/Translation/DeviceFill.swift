/// What a translated body says differently on each device of a request.
public struct DeviceFill: Sendable {
  /// The device's counter; nil where it has none, and the badge is left out.
  public var badge: Int64?

  public init(badge: Int64? = 1) { self.badge = badge }
}

/// Places in a translated body that are filled in for each device: bytes that no JSON has, since it escapes them.
enum Blank {
  static let badge: UInt8 = 1
  static let pushKey: UInt8 = 2
  /// Bytes that filling in makes of one at most.
  static let badgeDigits = 10
  static let pushKeyDigits = 40

  static func isIn(_ body: [UInt8]) -> Bool { body.contains { $0 == badge || $0 == pushKey } }

  /// Bytes of the body, filled in as largely as can be.
  static func count(_ body: ArraySlice<UInt8>) -> Int {
    body.reduce(body.count) { $0 + ($1 == badge ? badgeDigits - 1 : $1 == pushKey ? pushKeyDigits - 1 : 0) }
  }

  /// - Parameters:
  ///   - message: the message's key.
  ///   - token: the device's.
  static func filled(_ body: [UInt8], _ fill: DeviceFill, message: Int64 = 0, token: ArraySlice<UInt8> = []) -> [UInt8] {
    var filled: [UInt8] = []
    filled.reserveCapacity(body.count + badgeDigits + pushKeyDigits)
    var isFirstLeftOut = false
    for byte in body {
      switch byte {
      case badge:
        if let badge = fill.badge {
          filled.appendDecimal(badge)
        } else {
          filled.removeLastName()
          isFirstLeftOut = filled.last == 0x7B
        }
        continue
      case pushKey: MessageKey.appendPushKey(of: message, token: token.span, to: &filled)
      case 0x2C where isFirstLeftOut: break
      default: filled.append(byte)
      }
      isFirstLeftOut = false
    }
    return filled
  }
}

extension [UInt8] {
  /// Takes the name of a member without a value away, and the comma before it.
  fileprivate mutating func removeLastName() {
    guard let start = dropLast(2).lastIndex(of: 0x22) else { return }
    removeSubrange(start...)
    if last == 0x2C { removeLast() }
  }
}
