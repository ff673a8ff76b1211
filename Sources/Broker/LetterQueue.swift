/// A queue whose messages operators look at and remove.
public enum LetterQueue: Hashable, Sendable {
  case dead
  /// The hold queue of an application.
  case held(String)
  /// A lane: its queue's name without prefix.
  case lane(String)

  public func name(_ topology: Topology) -> String {
    switch self {
    case .dead: topology.deadQueue
    case .held(let app): topology.holdQueue(app)
    case .lane(let name): topology.name(name)
    }
  }

  public var heldApp: String? { if case .held(let app) = self { app } else { nil } }
}
