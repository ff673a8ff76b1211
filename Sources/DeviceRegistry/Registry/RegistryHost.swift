import Reactor
import Wire

/// What a client of the registry runs on.
package protocol RegistryHost {
  var time: Turn { get }
  /// - Throws: when the system has too little left for it.
  func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler) throws(SystemError)
    -> any RegistryDoor
}

/// A thread's event loop, and a thread of its own for the registry.
package final class LoopRegistryHost: RegistryHost {
  private let loop: EventLoop

  package init(_ loop: EventLoop) { self.loop = loop }

  package var time: Turn { loop.time }

  package func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler)
    throws(SystemError)
    -> any RegistryDoor
  {
    try Registry(location, loop: loop, handler: handler, limits: limits)
  }
}
