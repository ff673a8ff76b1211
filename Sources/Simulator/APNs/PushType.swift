/// A value of `apns-push-type` and its requirements for topic and payload.
struct PushType {
  let name: String
  /// The part of the topic after the bundle id.
  let suffix: String
  let payloadLimit: Int

  /// Apple, "Sending notification requests to APNs" and "Generating a remote notification".
  static let all = [
    ("alert", ""), ("background", ""), ("voip", ".voip"), ("complication", ".complication"),
    ("fileprovider", ".pushkit.fileprovider"), ("mdm", ""), ("location", ".location-query"),
    ("liveactivity", ".push-type.liveactivity"), ("pushtotalk", ".voip-ptt"), ("widgets", ".push-type.widgets"),
    ("controls", ".push-type.controls"),
  ].map { PushType(name: $0, suffix: $1, payloadLimit: $0 == "voip" ? 5120 : 4096) }

  static let byName = Dictionary(uniqueKeysWithValues: all.map { (Array($0.name.utf8), $0) })

  /// The bundle id of `topic` for this type; nil if the suffix is wrong.
  func bundleID(of topic: [UInt8]) -> [UInt8]? {
    guard suffix.isEmpty else {
      let tail = Array(suffix.utf8)
      return topic.count > tail.count && topic.suffix(tail.count).elementsEqual(tail) ? Array(topic.dropLast(tail.count)) : nil
    }
    let isForeign = Self.all.contains { !$0.suffix.isEmpty && topic.suffix($0.suffix.utf8.count).elementsEqual($0.suffix.utf8) }
    return isForeign ? nil : topic
  }
}
