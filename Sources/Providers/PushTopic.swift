/// The topic that a push goes out with.
struct PushTopic {
  let name: [UInt8]
  /// The application's own topic; nil where the request named another one.
  let ofApplication: [UInt8]?
  /// Whom it concerns that the provider refuses the topic.
  let scope: RefusalScope
}

/// Whom a refusal of the credential, or of what belongs to it, concerns.
enum RefusalScope {
  case everyPush
  /// Every push, as long as the provider takes none.
  case everyPushUntilTaken
  case thisPush
}
