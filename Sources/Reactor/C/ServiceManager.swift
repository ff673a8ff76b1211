import CLinux
import Glibc

/// Reports the state of the process to systemd (sd_notify(3)); does nothing if the environment names no socket. Never waits: a
/// message that doesn't fit is lost, and the next one follows soon.
public struct ServiceManager: Sendable {
  public enum Word: String, Sendable {
    case ready = "READY=1"
    case stopping = "STOPPING=1"
    case alive = "WATCHDOG=1"
  }

  /// A path, or `@` and a name of the abstract namespace.
  private let socket: String?

  public init(socket: String?) { self.socket = socket.flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil } }

  public static var ofProcess: ServiceManager { ServiceManager(socket: getenv("NOTIFY_SOCKET").map { String(cString: $0) }) }

  public func tell(_ word: Word) {
    guard let socket, var address = Self.address(socket) else { return }
    let raw = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard raw >= 0 else { return }
    let descriptor = Descriptor(adopting: raw)
    // A name of the abstract namespace ends with the address's length, not with a zero byte.
    let length = socklen_t(MemoryLayout<sa_family_t>.size + socket.utf8.count)
    let bytes = Array(word.rawValue.utf8)
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = sendto(descriptor.raw, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL), $0, length)
      }
    }
  }

  private static func address(_ socket: String) -> sockaddr_un? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(socket.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
    if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return address
  }
}
