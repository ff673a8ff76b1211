import DeviceRegistry
import PushCore

/// Stores `data.ext` in the registry if a push has no room for it. The push has the page's address instead (rule UP-21). The
/// page is named by its content, so a redelivered request has the same page.
enum ContentGate: Gate {
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool {
    entry.route.routes.isUPMC && pipeline.translations.translator.pages != nil && pipeline.registry != nil
      && entry.request?.isDryRun != true
  }

  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer {
    let translator = pipeline.translations.translator
    guard let pages = translator.pages, needsPage(entry, translator, at: pipeline.time.wallClock),
      let app = entry.identity.app, let content = entry.request?.extensionText, content.count <= pages.bytes
    else { return .go }
    let id = pipeline.apps[app].id
    let page = ContentPage(
      digest: Digest.sha256(id + [0] + content), app: id, content: content, keep: pages.keep, most: pages.most)
    return pipeline.wait(at: entry, for: .keepPage(page)) { entry, name in
      entry.registry.contentPage = name.map(pages.address)
    }
  }

  /// Bytes of a request below which `data.ext` always fits.
  private static let alwaysFits = 1_500

  /// True if `data.ext` doesn't fit some device's push, but a page's address does.
  private static func needsPage(_ entry: InFlight, _ translator: Translator, at now: Int64) -> Bool {
    guard entry.delivery.body.count > alwaysFits, entry.request?.hasExtension == true else { return false }
    return entry.waysToSend.contains { way in
      var report: LossReport?
      return (try? translator.rehearse(entry, way, at: now, &report)?.get()) == true
    }
  }
}
