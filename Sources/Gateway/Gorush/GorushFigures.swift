import DeviceRegistry
import PushCore
import StatusHTTP

/// Counts the devices that were sent to through gorush's interface, by application. Confined to the loop's thread.
final class GorushFigures {
  private struct Counts {
    var total = 0
    var success: [GorushNotification.Platform: Int] = [:]
    var error: [GorushNotification.Platform: Int] = [:]
  }

  private var counts: [[UInt8]: Counts] = [:]

  /// - Parameters:
  ///   - app: a configured application.
  ///   - total: targets; those without a result in time are neither successes nor errors.
  func count(_ app: [UInt8], _ platform: GorushNotification.Platform, total: Int, success: Int, errors: Int) {
    counts[app, default: Counts()].total += total
    counts[app, default: Counts()].success[platform, default: 0] += success
    counts[app, default: Counts()].error[platform, default: 0] += errors
  }

  /// The answer of `GET /api/stat/app` about a key's applications.
  func answer(of key: GatewayKey, version: String) -> HTTPAnswer {
    let known = key.apps.compactMap { counts[$0] }
    func sum(_ count: (Counts) -> Int) -> Int { known.reduce(0) { $0 + count($1) } }
    let platforms = GorushNotification.Platform.allCases.map { platform -> (String, any JSONMember) in
      let counts: JSONObject = [
        "push_success": sum { $0.success[platform, default: 0] }, "push_error": sum { $0.error[platform, default: 0] },
      ]
      return (platform.name, counts)
    }
    return .json(200, ["version": version, "total_count": sum(\.total)] + JSONObject(platforms))
  }
}
