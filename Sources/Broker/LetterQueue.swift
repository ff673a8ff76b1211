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

  /// The queues to go through: a lane may have several.
  public func queues(_ topology: Topology) -> [String] {
    guard case .lane(let name) = self, let lane = WorkQueue(origin: Array(name.utf8)) else { return [self.name(topology)] }
    return topology.queues(of: lane)
  }

  public var heldApp: String? { if case .held(let app) = self { app } else { nil } }
}
