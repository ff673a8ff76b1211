import Glibc

/// Identifies this process in its fleet.
public enum ThisProcess {
  public static let pid = Int(getpid())

  public static let host: String = {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "unknown" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }()

  /// `host:pid`, for the broker's list of connections.
  public static var name: String { "\(host):\(pid)" }
}
