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
    return .json(200) { body in
      body.set("version", version)
      body.set("total_count", Int64(known.reduce(0) { $0 + $1.total }))
      for platform in GorushNotification.Platform.allCases {
        body.set(
          platform.name,
          object: {
            $0.set("push_success", Int64(known.reduce(0) { $0 + $1.success[platform, default: 0] }))
            $0.set("push_error", Int64(known.reduce(0) { $0 + $1.error[platform, default: 0] }))
          })
      }
    }
  }
}
