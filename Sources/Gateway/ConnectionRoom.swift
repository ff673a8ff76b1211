/// How many connections each door may have, so that the process is never out of descriptors.
struct ConnectionRoom {
  /// For the broker, the registry, the figures, the feedback service and files.
  private static let reserve = 512

  let http: Int
  let binary: Int

  /// - Parameters:
  ///   - descriptors: that the process may have open.
  ///   - isShared: both doors are open. Old senders keep theirs open for hours, and get the larger part.
  init(descriptors: Int, isShared: Bool) {
    let room = max(descriptors - Self.reserve, 64)
    http = min(4_096, isShared ? room / 4 : room)
    binary = min(20_000, isShared ? room / 4 * 3 : room)
  }
}
