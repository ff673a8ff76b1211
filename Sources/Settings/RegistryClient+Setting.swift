import DeviceRegistry
import Logging
import Reactor

extension RegistryClient {
  /// - Parameter location: what `registry` says.
  /// - Throws: naming the setting when the location can't be parsed or there is no thread to be had.
  package convenience init(_ location: String, limits: RegistryLimits, host: any RegistryHost, log: Log)
    throws(ConfigurationError)
  {
    let parsed: RegistryLocation
    do throws(RegistryError) { parsed = try RegistryLocation(parsing: location) } catch {
      throw ConfigurationError(key: "registry", problem: "cannot be used: \(error)")
    }
    do throws(SystemError) { try self.init(parsed, limits: limits, host: host, log: log) } catch {
      throw ConfigurationError(key: "registry", problem: "has no thread: \(error)")
    }
  }
}
