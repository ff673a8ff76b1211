import Providers
import TLS

/// The CAs of a `ca` setting, with a TLS context for clients without a certificate.
struct Trust: Sendable {
  /// Digest of the CAs' text; nil for the system's CAs.
  let digest: Int?
  let store: TrustStore
  let anonymous: TLSClientContext
}

/// One shared `Trust` per list of CAs.
struct TrustCache {
  private var trusts: [Int?: Trust] = [:]
  private var used: Set<Int?> = []

  /// - Parameter setting: the name of `ca`, for errors.
  mutating func trust(_ ca: Material?, _ files: MaterialCache, for setting: String) throws(ConfigurationError) -> Trust {
    let pem: [UInt8]? = if let ca { try files.bytes(of: ca, for: setting) } else { nil }
    let digest = pem?.hashValue
    used.insert(digest)
    if let trust = trusts[digest] { return trust }
    let trust = try usable(setting) { () throws(CredentialError) in
      let store = if let pem { try TrustStore(pem: pem, file: ca?.path) } else { try TrustStore.system() }
      return Trust(digest: digest, store: store, anonymous: try .provider(trust: store))
    }
    trusts[digest] = trust
    return trust
  }

  /// Drops entries that were not requested since the last call.
  mutating func forgetUnused() {
    trusts = trusts.filter { used.contains($0.key) }
    used = []
  }
}

/// Caches file contents while a configuration is loaded, so that each file is read once.
final class MaterialCache {
  private var contents: [Material: Result<[UInt8], ConfigurationError>] = [:]

  /// - Parameter setting: the material's setting, for errors.
  func bytes(of material: Material, for setting: String) throws(ConfigurationError) -> [UInt8] {
    if contents[material] == nil {
      contents[material] = Result { () throws(ConfigurationError) in try material.bytes(for: setting) }
    }
    do throws(ConfigurationError) { return try contents[material]!.get() } catch {
      throw ConfigurationError(key: setting, problem: error.problem)
    }
  }

  func text(of material: Material, for setting: String) throws(ConfigurationError) -> String {
    switch material {
    case .text(let text): return text
    case .file(let path):
      guard let text = FileText.value(try bytes(of: material, for: setting)) else {
        throw ConfigurationError(key: setting, problem: FileText.notText(path))
      }
      return text
    }
  }
}
