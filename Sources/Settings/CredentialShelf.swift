import Broker
import Reactor

/// The credentials of a process: each loaded once for all shards, and loaded again when its files or settings have changed.
///
/// For the main thread, so that no shard waits while files are read; what it hands out is immutable.
package struct CredentialShelf {
  package private(set) var credentials: [CredentialPlace: LoadedCredential] = [:]
  /// The settings of credentials that can't be used, and that have no earlier one in their place.
  package private(set) var missing: Set<String> = []
  package private(set) var brokers: [BrokerAddress] = []
  private var trusts = TrustCache()

  package init() {}

  /// Loads what is new or has changed. What can't be loaded stays as it was, and costs nothing else.
  ///
  /// - Returns: what can't be used, by the setting that names it.
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
            byContent[fingerprint] = try LoadedCredential(
              source, setting: place.setting, fingerprint: fingerprint, files: files, trust: trust)
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

  /// What else of the credential can't be read.
  private static func unreadable(_ source: CredentialSource, _ setting: String, _ files: MaterialCache) -> [ConfigurationError]
  {
    var errors: [ConfigurationError] = []
    for (name, material) in source.materials {
      do throws(ConfigurationError) { _ = try files.digest(of: material, for: "\(setting).\(name)") } catch {
        errors.append(error)
      }
    }
    return errors
  }

  /// The same for equal contents of different files.
  private static func fingerprint(of source: CredentialSource, _ setting: String, _ trust: Trust, _ files: MaterialCache)
    throws(ConfigurationError) -> Int
  {
    var hasher = Hasher()
    hasher.combine(source.identity)
    hasher.combine(trust.digest)
    for (name, material) in source.materials { hasher.combine(try files.digest(of: material, for: "\(setting).\(name)")) }
    return hasher.finalize()
  }
}
