import MachineDriver
import TestSupport
import Wire

/// A machine, its driver and its clock; what callbacks find wrong is kept until a step ends.
class MachineFuzz {
  let machine: any Machine
  private(set) var driver: MachineDriver
  private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
  /// Bytes of one call.
  var cut = Int.max
  private(set) var violation: Violation?

  init(_ machine: any Machine, applicationProtocol: String? = nil) {
    self.machine = machine
    driver = MachineDriver(machine)
    driver.applicationProtocol = applicationProtocol
    driver.open(at: now)
  }

  func expect(_ isKept: Bool, _ promise: @autoclosure () -> String) {
    if !isKept, violation == nil { violation = Violation(description: promise()) }
  }

  func checkViolation() throws(Violation) { if let violation { throw violation } }

  /// Takes what the machine writes.
  func written(_ bytes: [UInt8]) throws(Violation) {}

  func say(_ bytes: [UInt8]) throws(Violation) {
    var rest = bytes[...]
    while !rest.isEmpty, driver.end == nil {
      driver.receive(Array(rest.prefix(cut)), at: now)
      rest = rest.dropFirst(cut)
    }
    try settle()
  }

  func flush() throws(Violation) {
    try written(driver.collect(at: now))
    try settle()
  }

  private func settle() throws(Violation) {
    driver.settle(at: now)
    try checkViolation()
  }

  /// The peer closes after so many seconds; the machine's handler has heard of the end then.
  func finish(after seconds: Double, _ hasEnded: @autoclosure () -> Bool, _ promise: String) throws(Violation) {
    try flush()
    try wait(seconds)
    try end(.closedByPeer)
    try require(hasEnded(), promise)
  }

  /// Lets time pass, deadline by deadline.
  func wait(_ seconds: Double) throws(Violation) {
    let target = now.advanced(bySeconds: seconds)
    var rounds = 0
    while driver.isOpen, machine.deadline <= target {
      rounds += 1
      try require(rounds < 1000, "a deadline that never passes")
      now = max(now, machine.deadline)
      driver.checkDeadline(at: now)
      try flush()
    }
    now = target
  }

  func end(_ reason: TransportEnd) throws(Violation) {
    driver.finish(reason, at: now)
    try checkViolation()
  }

  /// On a new transport, once the old one has ended.
  func reopen() throws(Violation) {
    guard driver.end != nil else { return }
    driver = MachineDriver(machine)
    driver.open(at: now)
    try checkViolation()
  }
}
