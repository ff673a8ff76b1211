/// A configuration error; the command exits with status 78. Never contains a secret.
public struct ConfigurationError: Error, Equatable, CustomStringConvertible {
  /// The key's path, such as `apps.com.example.app.apns.keyID`, or the file's name.
  public let key: String
  /// The environment variable that provided the value; nil for the file.
  public let variable: String?
  /// The fault, and the expected value.
  public let problem: String

  public init(key: String, variable: String? = nil, problem: String) {
    self.key = key
    self.variable = variable
    self.problem = problem
  }

  public var description: String { "configuration: \(key)\(variable.map { " (\($0))" } ?? "") \(problem)" }
}
