/// A configuration that cannot be used; the command exits with status 78. Never holds a secret's value.
public struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  /// The path of the key, such as `apps.com.example.app.apns.keyID`, or the name of the file.
  public let key: String
  /// What is wrong with it and what would be right.
  public let problem: String

  public init(key: String, problem: String) {
    self.key = key
    self.problem = problem
  }

  public var description: String { "configuration: \(key) \(problem)" }
}
