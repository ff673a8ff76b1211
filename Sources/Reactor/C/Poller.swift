import CLinux
import Glibc

/// epoll's event bits.
struct Readiness: OptionSet {
  let rawValue: UInt32
  static let input = Readiness(rawValue: EPOLLIN.rawValue)
  static let output = Readiness(rawValue: EPOLLOUT.rawValue)
  static let peerShutdown = Readiness(rawValue: EPOLLRDHUP.rawValue)
  /// Reported even if not requested.
  static let hangup = Readiness(rawValue: EPOLLHUP.rawValue)
  static let error = Readiness(rawValue: EPOLLERR.rawValue)
}

/// An epoll instance, level-triggered.
final class Poller {
  private let descriptor: Descriptor
  private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)

  init() throws(SystemError) {
    descriptor = try Descriptor(adopting: epoll_create1(Int32(EPOLL_CLOEXEC)), of: "epoll_create1")
    events.initialize(repeating: epoll_event())
  }

  deinit { events.deallocate() }

  func add(_ raw: Int32, _ interest: Readiness, key: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_ADD, raw, interest, key)
  }

  func modify(_ raw: Int32, _ interest: Readiness, key: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_MOD, raw, interest, key)
  }

  func remove(_ raw: Int32) { _ = epoll_ctl(descriptor.raw, EPOLL_CTL_DEL, raw, nil) }

  private func control(_ operation: Int32, _ raw: Int32, _ interest: Readiness, _ key: UInt64) throws(SystemError) {
    var event = epoll_event(events: interest.rawValue, data: epoll_data_t(u64: key))
    guard epoll_ctl(descriptor.raw, operation, raw, &event) == 0 else { throw SystemError("epoll_ctl") }
  }

  /// Waits and returns the number of events for `event(at:)`. A negative timeout waits without end; a signal ends the wait.
  func wait(milliseconds: Int32) -> Int {
    Int(max(0, epoll_wait(descriptor.raw, events.baseAddress, Int32(events.count), milliseconds)))
  }

  func event(at index: Int) -> (key: UInt64, readiness: Readiness) {
    let event = events[index]
    return (event.data.u64, Readiness(rawValue: event.events))
  }
}
