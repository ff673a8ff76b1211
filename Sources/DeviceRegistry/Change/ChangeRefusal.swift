/// Why a change is invalid; the answer for its sender. Names place and rule, never a token or a user.
public struct ChangeRefusal: Error, Equatable, Sendable, CustomStringConvertible {
  public let code: ChangeError
  public let reason: String

  public init(_ code: ChangeError, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  static func invalid(_ reason: String) -> Self { ChangeRefusal(.invalidParameters, reason) }

  public var answer: ChangeAnswer { .refused(code, reason: reason) }
  public var description: String { "\(code.rawValue): \(reason)" }
}
