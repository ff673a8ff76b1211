import Glibc

/// A failed system call and its error. Never contains a secret.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
  public let call: String
  public let code: Int32

  public init(_ call: String, code: Int32 = errno) {
    self.call = call
    self.code = code
  }

  public var description: String { "\(call): \(reason)" }

  /// The system's text for the code, such as "No such file or directory".
  public var reason: String { Self.text(code) }

  /// True if another socket already listens there.
  public var isInUse: Bool { code == EADDRINUSE }
  /// True if this machine doesn't have the address.
  public var isOfNoAddress: Bool { code == EADDRNOTAVAIL }

  static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
