import PushCore
import Reactor

/// The gateway's listeners and the webhooks, with checks that open no connection.
extension Configuration {
  /// The gateway's address for metrics; nil for none.
  public var gatewayFigures: Endpoint? { gateway?.isConsole == true ? nil : gateway?.metrics ?? metrics }

  /// The settings of `pushfleet console`.
  /// - Throws: if others could read the cookie of a login on its way.
  public func console(at listen: Endpoint) throws(ConfigurationError) -> Configuration {
    let identity = gateway?.http?.identity
    guard identity != nil || ["localhost", "::1"].contains(listen.host) || listen.host.hasPrefix("127.") else {
      throw ConfigurationError(
        key: "gateway.http.certificate", problem: "is missing: beyond this machine (\(listen)) the console needs TLS")
    }
    var copy = self
    copy.gateway = GatewaySettings(
      console: GatewayHTTPSettings(listen: listen, identity: identity, login: gateway?.http?.login))
    return copy
  }

  var doorMaterials: [(setting: String, material: Material)] {
    let (http, apns) = (gateway?.http?.identity, gateway?.apns)
    let all: [(String, Material?)] = [
      ("gateway.http.certificate", http?.certificate), ("gateway.http.key", http?.key),
      ("gateway.apns.certificate", apns?.certificate), ("gateway.apns.key", apns?.key),
      ("gateway.apns.clients", apns?.clients),
    ]
    return all.compactMap { setting, material in material.map { (setting, $0) } }
  }

  /// The certificates and keys of connections to the broker.
  var brokerMaterials: [Material?] { [brokerCA] + (brokerIdentity?.materials(.broker).map(\.material) ?? []) }

  /// The files of the gateway's and the broker's certificates and keys, and the configuration file.
  public func gatewayFiles(_ own: String?) -> [String] { watchedFiles(doorMaterials.map(\.material), own) }

  private func watchedFiles(_ materials: [Material?], _ own: String?) -> [String] {
    Set((materials + brokerMaterials).compactMap { $0?.path } + [own].compactMap(\.self)).union(valueFiles).sorted()
  }

  /// Applications with an APNs credential that its senders may use: the configured one, or those of the client certificates.
  package var binaryApps: [String] {
    guard let door = gateway?.apns else { return [] }
    return apps.filter { (door.app == nil || door.app == $0.id) && $0.sets.contains { !$0.set.apns.isEmpty } }.map(\.id)
  }

  /// Applications whose feedback is kept for the feedback service.
  var binaryFeedbackApps: [String] { gateway?.apns?.feedback == nil ? [] : binaryApps }

  /// The errors in the files that webhooks name.
  var webhookErrors: [ConfigurationError] {
    apps.flatMap { app in
      app.webhooks.compactMap { webhook in
        let setting = webhook.setting(of: app.id)
        do throws(ConfigurationError) {
          _ = try webhook.loadSecrets(setting)
          _ = try webhook.target(setting, timeout: 1)
          return nil
        } catch { return error }
      }
    }
  }

  /// The files of webhooks' secrets and authorities, of the broker's certificates, and the configuration file.
  package func webhookFiles(_ own: String?) -> [String] {
    watchedFiles(apps.flatMap(\.webhooks).flatMap { $0.secrets + [$0.ca] }, own)
  }

  package var doorAddresses: [(setting: String, address: Endpoint)] {
    guard let gateway else { return [] }
    let places: [(String, Endpoint?)] = [
      ("gateway.http.listen", gateway.http?.listen), ("gateway.apns.listen", gateway.apns?.listen),
      ("gateway.apns.feedback", gateway.apns?.feedback),
      (gateway.metrics == nil ? "metrics" : "gateway.metrics", gatewayFigures),
    ]
    return places.compactMap { setting, address in address.map { (setting, $0) } }
  }

  /// - Throws: if `gateway.apns.app` is an application without APNs settings.
  package func requireBinaryApp() throws(ConfigurationError) {
    guard let app = gateway?.apns?.app, binaryApps.isEmpty else { return }
    throw ConfigurationError(
      key: "gateway.apns.app", problem: "must be an application with settings for APNs; \(SafeText.value(app)) has none")
  }

  /// - Parameter now: Unix seconds.
  func doorErrors(at now: Int64) -> [ConfigurationError] {
    guard let gateway else { return [] }
    var errors: [ConfigurationError] = []
    func check(_ step: () throws(ConfigurationError) -> Void) {
      do throws(ConfigurationError) { try step() } catch { errors.append(error) }
    }
    if gateway.http != nil, registry == nil { errors.append(.missingDoorRegistry) }
    check { () throws(ConfigurationError) in try requireBinaryApp() }
    for (setting, material) in doorMaterials {
      check { () throws(ConfigurationError) in _ = try material.bytes(for: setting) }
    }
    func areReadable(_ settings: String...) -> Bool { !errors.contains { settings.contains($0.key) } }
    if let http = gateway.http, areReadable("gateway.http.certificate", "gateway.http.key") {
      check { () throws(ConfigurationError) in try http.loadCertificate()?.refuseExpired(at: now) }
    }
    if let apns = gateway.apns, areReadable("gateway.apns.certificate", "gateway.apns.key") {
      var own: DoorCertificate?
      check { () throws(ConfigurationError) in own = try apns.loadCertificate() }
      if let own, areReadable("gateway.apns.clients") { check { () throws(ConfigurationError) in _ = try apns.tls(own) } }
      check { () throws(ConfigurationError) in try own?.refuseExpired(at: now) }
    }
    var seen: [Endpoint: String] = [:]
    for (setting, address) in doorAddresses {
      if let other = seen.updateValue(setting, forKey: address) {
        errors.append(
          ConfigurationError(key: setting, problem: "is \(address), which \(other) uses, too: choose another port"))
      }
    }
    return errors
  }
}

extension ConfigurationError {
  package static var missingDoorRegistry: Self {
    Self(
      key: "registry",
      problem: "is missing: gateway.http keeps its senders' keys there; name one, such as \"sqlite:registry.db\"")
  }
}

extension DoorCertificate {
  /// - Parameter now: Unix seconds.
  fileprivate func refuseExpired(at now: Int64) throws(ConfigurationError) {
    guard identity.notAfter <= now else { return }
    let end = String(decoding: Timestamp.text(identity.notAfter * 1000), as: UTF8.self)
    throw ConfigurationError(
      key: setting, problem: "has expired (\(end)): senders refuse it; renew it; a running gateway loads the new file")
  }
}
