import DeviceRegistry
import Logging
import Reactor

extension RegistryClient {
  /// - Parameter location: the value of `registry`.
  /// - Throws: an error that names the setting if the location is invalid or no thread can be started.
  package convenience init(_ location: String, limits: RegistryLimits, host: any RegistryHost, log: Log)
    throws(ConfigurationError)
  {
    let parsed: RegistryLocation
    do throws(RegistryError) { parsed = try RegistryLocation(parsing: location) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    do throws(SystemError) { try self.init(parsed, limits: limits, host: host, log: log) } catch {
      throw ConfigurationError(key: "registry", problem: "can't be used: no thread could be started: \(error)")
    }
  }
}
