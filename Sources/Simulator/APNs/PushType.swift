/// A value of `apns-push-type` and its requirements for topic and payload.
struct PushType {
  let name: String
  /// The part of the topic after the bundle id.
  let suffix: String
  let payloadLimit: Int

  /// Apple, "Sending notification requests to APNs" and "Generating a remote notification".
  static let all: [PushType] = [
    PushType(name: "alert", suffix: "", payloadLimit: 4096),
    PushType(name: "background", suffix: "", payloadLimit: 4096),
    PushType(name: "voip", suffix: ".voip", payloadLimit: 5120),
    PushType(name: "complication", suffix: ".complication", payloadLimit: 4096),
    PushType(name: "fileprovider", suffix: ".pushkit.fileprovider", payloadLimit: 4096),
    PushType(name: "mdm", suffix: "", payloadLimit: 4096),
    PushType(name: "location", suffix: ".location-query", payloadLimit: 4096),
    PushType(name: "liveactivity", suffix: ".push-type.liveactivity", payloadLimit: 4096),
    PushType(name: "pushtotalk", suffix: ".voip-ptt", payloadLimit: 4096),
    PushType(name: "widgets", suffix: ".push-type.widgets", payloadLimit: 4096),
    PushType(name: "controls", suffix: ".push-type.controls", payloadLimit: 4096),
  ]

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
