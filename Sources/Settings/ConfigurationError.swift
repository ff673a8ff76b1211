/// A configuration that cannot be used; the command exits with status 78. Never holds a secret's value.
public struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  /// The path of the key, such as `apps.com.example.app.apns.keyID`, or the name of the file.
  public let key: String
  /// The environment's variable that the value came from; nil for the file.
  public let variable: String?
  /// What is wrong with it and what would be right.
  public let problem: String

  public init(key: String, variable: String? = nil, problem: String) {
    self.key = key
    self.variable = variable
    self.problem = problem
  }

  public var description: String { "configuration: \(key)\(variable.map { " (\($0))" } ?? "") \(problem)" }
}
