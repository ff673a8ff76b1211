/// Why a change can't be read: an answer for whoever sent it. Names place and rule, never a token or a user.
public struct ChangeRefusal: Error, Equatable, Sendable, CustomStringConvertible {
  public let code: ChangeError
  public let reason: String

  public init(_ code: ChangeError, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  public var answer: ChangeAnswer { .refused(code, reason: reason) }
  public var description: String { "\(code.rawValue): \(reason)" }
}
