/// Why a store couldn't do what it was asked. The description is for operators: it names the fault and what to do, never a token or a
/// user.
public enum RegistryError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Transient: retry later. The request had no effect, or one that is safe to repeat.
  case unavailable(Unavailability, String)
  /// The store can't be used as it is; an operator must act.
  case unusable(Unusability, String)
  /// The value itself is refused by the database: asking again is pointless.
  case refused(String)
  /// Another worker has claimed the queue's changes since: they had no effect, and are to be claimed again before they are applied.
  case fenced

  public enum Unavailability: String, Sendable {
    /// Another process holds the lock.
    case locked
    /// No space left.
    case full
    /// The database, its file or its folder can't be written to.
    case readOnly
    /// No connection, or lost on the way.
    case down
    /// No answer within the time limit, or too many requests waiting.
    case slow
    /// Too many connections, out of memory: the server refuses work.
    case overloaded
  }

  public enum Unusability: String, Sendable {
    case corrupt
    /// Written by a newer version of this program.
    case newerSchema
    /// Not a registry: another program's database, an empty file, a missing file that had to be there.
    case notARegistry
    /// The location can't be parsed or isn't supported.
    case badLocation
    /// The server refuses our name, password or rights.
    case accessDenied
    /// A fault of this program or a database that was tampered with.
    case broken
  }

  /// What can be read is no sign that it has passed.
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
    case .fenced: "another worker has claimed the changes since"
    }
  }
}
