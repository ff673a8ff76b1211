import Broker
import Reactor

/// The loaded credentials of a process, shared by all shards, and reloaded when files or settings change. Used on the main
/// thread, so that no shard waits for files; the values it returns are immutable.
package struct CredentialStore {
  package private(set) var credentials: [CredentialPlace: LoadedCredential] = [:]
  /// Settings of credentials that can't be loaded and have no earlier version.
  package private(set) var missing: Set<String> = []
  package private(set) var brokers: [BrokerAddress] = []
  private var trusts = TrustCache()

  package init() {}

  /// Loads new and changed credentials. A credential that can't be loaded keeps its earlier version and affects no other.
  /// - Returns: an error for each credential that can't be loaded.
  package mutating func load(_ configuration: Configuration) -> [ConfigurationError] {
    let files = MaterialCache()
    var errors: [ConfigurationError] = []
    var loaded: [CredentialPlace: LoadedCredential] = [:]
    var known: [CredentialSource: LoadedCredential?] = [:]
    var byContent = Dictionary(credentials.values.map { ($0.fingerprint, $0) }, uniquingKeysWith: { first, _ in first })
    for (place, source) in configuration.credentials {
      if known[source] == nil {
        do throws(ConfigurationError) {
          let trust = try trusts.trust(source.ca, files, for: "\(place.setting).ca")
          let fingerprint = try Self.fingerprint(of: source, place.setting, trust, files)
          if byContent[fingerprint] == nil {
            byContent[fingerprint] = LoadedCredential(try source.load(place.setting, files, trust), fingerprint: fingerprint)
          }
          known[source] = byContent[fingerprint]
        } catch {
          errors.append(error)
          errors += Self.unreadable(source, place.setting, files).filter { $0.key != error.key }
          known[source] = .some(nil)
        }
      }
      loaded[place] = known[source].flatMap(\.self) ?? credentials[place]
    }
    credentials = loaded
    missing = Set(configuration.credentials.lazy.map(\.place).filter { loaded[$0] == nil }.map(\.setting))
    do throws(ConfigurationError) {
      brokers = try configuration.brokerAddresses(files: files, trusts: &trusts)
    } catch {
      errors.append(error)
    }
    trusts.forgetUnused()
    return errors
  }

  /// Errors of the credential's other files.
  private static func unreadable(_ source: CredentialSource, _ setting: String, _ files: MaterialCache) -> [ConfigurationError]
  {
    var errors: [ConfigurationError] = []
    for (name, material) in source.materials {
      do throws(ConfigurationError) { _ = try files.bytes(of: material, for: "\(setting).\(name)") } catch {
        errors.append(error)
      }
    }
    return errors
  }

  /// Equal for files with equal contents.
  private static func fingerprint(of source: CredentialSource, _ setting: String, _ trust: Trust, _ files: MaterialCache)
    throws(ConfigurationError) -> Int
  {
    var hasher = Hasher()
    hasher.combine(source.identity)
    hasher.combine(source.proxy)
    hasher.combine(trust.digest)
    for (name, material) in source.materials { hasher.combine(try files.bytes(of: material, for: "\(setting).\(name)")) }
    return hasher.finalize()
  }
}
