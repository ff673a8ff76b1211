import Reactor
import Wire

package protocol RegistryHost {
  var time: Turn { get }
  /// - Throws: if the system lacks resources.
  func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler) throws(SystemError)
    -> any RegistryDoor
}

/// Runs the registry client on an event loop, and the registry on a separate thread.
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
