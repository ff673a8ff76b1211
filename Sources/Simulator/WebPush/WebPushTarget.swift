/// A subscription by the path of its endpoint.
struct WebPushTarget {
  let vendor: any WebPushVendor
  /// Its name in scripts and journals.
  let id: [UInt8]
  /// The origin that the endpoint belongs to is not part of it.
  let path: [UInt8]

  /// Nil if no vendor has such a path.
  init?(_ path: [UInt8]) {
    guard let place = Self.places.first(where: { path.starts(with: $0.prefix.utf8) }) else { return nil }
    vendor = place.vendor
    id = Array(path.dropFirst(place.prefix.utf8.count).prefix { $0 != UInt8(ascii: "?") })
    self.path = path
  }

  /// True if the simulator may have made the subscription. It knows any id of a usual form.
  var isKnown: Bool { (1...1024).contains(id.count) && id.allSatisfy { Self.idCharacters.contains($0) } }

  private static let places: [(prefix: String, vendor: any WebPushVendor)] = [
    ("/fcm/send/", GooglePush()), ("/wp/", GooglePush()), ("/wpush/v1/", MozillaPush(bindsKeys: false)),
    ("/wpush/v2/", MozillaPush(bindsKeys: true)), ("/apple/", ApplePush()), ("/w/?token=", WindowsPush()),
    ("/up/", UnifiedPush()),
  ]

  /// Where the simulator makes subscriptions.
  static let newest = ["/fcm/send/", "/wpush/v2/", "/apple/", "/w/?token=", "/up/"]

  private static let idCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:.~%=+".utf8)
}
