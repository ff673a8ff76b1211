/// Records that are removed when nobody needs them any more.
public enum Purge: Sendable {
  /// Gone devices.
  case devices
  /// Tokens of ended live activities.
  case activities
  /// Secrets of installations without a device.
  case secrets
  /// Campaigns that are over.
  case campaigns
  /// The known states of messages on devices.
  case notes
  /// Places of collapse keys whose requests wait no more.
  case waiting
  /// Expired requests with an idempotency key.
  case requests
  /// Pages of content.
  case content
  /// Operations of operators.
  case audit
}
