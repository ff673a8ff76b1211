/// Why a store operation failed. The description is for operators: it states the fault and the remedy, never a token or a user.
public enum RegistryError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Transient: retry later. The request had no effect, or an effect that is safe to repeat.
  case unavailable(Unavailability, String)
  /// The store can't be used in its present state; an operator must act.
  case unusable(Unusability, String)
  /// The database refuses the value itself. A retry is pointless.
  case refused(String)
  /// Another worker has claimed the queue's changes since. They had no effect; claim them again before applying them.
  case fenced

  public enum Unavailability: String, Sendable {
    case locked
    case full
    /// The database, its file or its folder isn't writable.
    case readOnly
    /// No connection, or the connection was lost.
    case down
    /// No answer within the time limit, or too many waiting requests.
    case slow
    /// The server refuses work: too many connections, or out of memory.
    case overloaded
  }

  public enum Unusability: String, Sendable {
    case corrupt
    /// Written by a newer version of this program.
    case newerSchema
    /// Not a registry: another program's database, an empty file, or a required file that is missing.
    case notARegistry
    /// The location can't be parsed or isn't supported.
    case badLocation
    /// The server refuses our user, password or permissions.
    case accessDenied
    /// A bug in this program, or a modified database.
    case broken
  }

  /// True if successful reads don't show that the fault is over.
  var isOfWriting: Bool {
    switch self {
    case .unavailable(.readOnly, _), .unavailable(.full, _): true
    case .unavailable, .unusable, .refused, .fenced: false
    }
  }

  public var description: String {
    switch self {
    case .unavailable(.readOnly, let why): "registry read-only: \(why)"
    case .unavailable(let kind, let why): "registry \(kind.rawValue): \(why)"
    case .unusable(_, let why): "registry unusable: \(why)"
    case .refused(let why): "refused by the registry: \(why)"
    case .fenced: "another worker has claimed the changes in the meantime"
    }
  }
}
