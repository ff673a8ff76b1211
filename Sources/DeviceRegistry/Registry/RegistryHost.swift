import Reactor
import Wire

package protocol RegistryHost {
  var time: Turn { get }
  /// - Throws: if the system lacks resources.
  func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler) throws(SystemError)
    -> any RegistryDoor
}

/// Runs the registry on a separate thread.
extension EventLoop: RegistryHost {
  package func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler)
    throws(SystemError)
    -> any RegistryDoor
  {
    try Registry(location, loop: self, handler: handler, limits: limits)
  }
}
