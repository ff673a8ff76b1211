import Glibc

/// A failed system call: which one, and why. Never names a secret.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  public let call: String
  /// The call's `errno`.
  public let code: Int32

  public init(_ call: String, code: Int32 = errno) {
    self.call = call
    self.code = code
  }

  public var description: String { "\(call): \(reason)" }

  /// The system's own words for the code, such as "No such file or directory".
  public var reason: String { Self.text(code) }

  /// Somebody else listens there.
  public var isInUse: Bool { code == EADDRINUSE }
  /// This machine has no such address.
  public var isOfNoAddress: Bool { code == EADDRNOTAVAIL }

  static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
