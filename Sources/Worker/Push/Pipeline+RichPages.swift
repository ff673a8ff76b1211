import DeviceRegistry
import PushCore
import TLS

/// `data.ext` for which a push has no room is kept by the registry before the first push, which has the address of its page instead (rule UP-21):
/// one page for a request, and the same when it is delivered again, since it goes by what is in it.
extension Pipeline {
  /// False where the registry is asked first; the request goes on with its answer.
  func hasPage(_ entry: InFlight) -> Bool {
    guard let pages = translator.pages, lookUps != nil, translator.mayHavePage(entry) else { return true }
    switch entry.registry.contentPage {
    case .kept, .needless: return true
    case .asked: return false
    case nil: break
    }
    guard needsPage(entry), let app = entry.identity.app, let content = entry.parsed?.request.extensionText,
      content.count <= pages.bytes
    else {
      entry.registry.contentPage = .needless
      return true
    }
    entry.registry.contentPage = .asked
    let page = ContentPage(
      digest: Digest.sha256(apps[app].id + [0] + content), app: apps[app].id, content: content, keep: pages.keep,
      most: pages.most)
    broadcasts.report(.keepPage(page), for: entry) { broadcasts in
      { entry, name in
        entry.registry.contentPage = name.map { .kept(pages.address(of: $0)) } ?? .needless
        broadcasts.pipeline.enqueueUnlessOver(entry)
      }
    } orElse: { broadcasts in
      { entry, error in
        entry.registry.contentPage = nil
        broadcasts.pipeline.refuseOrPutOff(entry, error)
      }
    }
    return false
  }

  /// What is translated of fewer bytes fits wherever it goes.
  private static let alwaysFits = 1_500

  /// A push to one of its devices has no room for `data.ext`, and has for an address.
  private func needsPage(_ entry: InFlight) -> Bool {
    guard entry.delivery.body.count > Self.alwaysFits, entry.parsed?.hasExtension == true else { return false }
    return entry.waysToSend.contains { way in
      var report: LossReport?
      let usesPage =
        switch way.platform {
        case .apns:
          translator.apns(entry, pool: way.pool, isBroadcast: way.isChannel, isRehearsed: true, at: time.wallClock, &report)
            .map(\.usesPage)
        case .fcm: translator.fcm(entry, isRehearsed: true, at: time.wallClock, &report).map(\.usesPage)
        }
      return (try? usesPage.get()) == true
    }
  }
}
