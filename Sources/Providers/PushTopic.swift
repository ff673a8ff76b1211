/// The topic of a push.
struct PushTopic {
  let name: [UInt8]
  /// The application's own topic; nil if the request named another.
  let ofApplication: [UInt8]?
  /// The pushes that a refusal of the topic concerns.
  let scope: RefusalScope
}

/// The pushes that a refusal concerns.
enum RefusalScope {
  case everyPush
  /// Every push, until the provider has accepted one.
  case everyPushUntilTaken
  case thisPush
}
