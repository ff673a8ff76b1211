import PushCore

/// Regular expressions (ECMA 262, for JSON Schema) for texts in requests. Each corresponds to a check in `TextForm`, `Target` or
/// `FieldCheck`.
enum Pattern {
  static let hexPairs = "([0-9a-fA-F]{2}){1,100}"
  static let name = "[a-zA-Z0-9\\-_.~%]"
  static let color = "^#[0-9a-fA-F]{6}$"
  static let secureURL = "^[hH][tT][tT][pP][sS]://[^\\u0000-\\u0020\\u007f]+$"
  static let label = "^\(name){1,50}$"
  static let topicName = "\(name){1,899}"
  /// Counts characters; the parser counts bytes.
  static let userID = "[^\\u0000-\\u001f\\u007f-\\u009f]{1,255}"
  /// May be empty, because an empty name counts as absent.
  static let packageName = "^[A-Za-z0-9._\\-]{0,255}$"
  static let bundleID = "^[A-Za-z0-9._\\-]{1,255}$"
  static let uuid = "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"
  static let seconds = "^[0-9]{1,12}$"
  static let duration = "^[0-9]{1,12}(\\.[0-9]{1,9})?s$"
  /// At most four weeks, without a further fraction of a second.
  static let lifetime =
    atMost(RequestLimits.longestTimeToLive - 1, digits: 12, then: "(\\.[0-9]{1,9})?s")
    + "|^0{0,5}\(RequestLimits.longestTimeToLive)(\\.0{1,9})?s$"
  private static let leapYear = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
  private static let date =
    "([0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    + "|[0-9]{4}-02-(0[1-9]|1[0-9]|2[0-8])|\(leapYear)-02-29)"
  static let timestamp =
    "^\(date)T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]{1,9})?"
    + "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
  /// Not before 1970.
  static let timestampSince1970 = "^(?!0|1[0-8]|19[0-6])" + timestamp.dropFirst()
  /// UTC with milliseconds, as in outcomes.
  static let writtenTime = "^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"
  static let plainLine =
    "^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]*$"
  static let noControl = "^[^\\u0000-\\u001f\\u007f]+$"
  static let freeDataKey = "^(?!from$|message_type$|google|gcm)"
  static let freeV1DataKey = #"^(?!from$|message_type$|google\.|gcm\.notification\.)"#
  static let registration = "pf1r~[0-7][0-9a-hjkmnp-tv-z]{25}"
  static let notificationKey = "pf1g~[0-7][0-9a-hjkmnp-tv-z]{25}"
  static let installationID = "[cdef][A-Za-z0-9_\\-]{21}"
  /// Without `..`, `%2e` and `%2f`.
  static let fcmToken = "(?!.*(\\.\\.|%2[eEfF]))[A-Za-z0-9_:.%\\-]{1,4096}"
  static let evenHex = "([0-9a-fA-F]{2}){32,100}"
  /// Excludes the other forms, and 64 to 200 hexadecimal digits, which are an APNs token.
  static let bareToken = "(?!apns:|apns-channel:|fcm:|fid:|webpush:)(?![0-9a-fA-F]{64,200}$)\(fcmToken)"

  /// FCM's own topics, or the beginning of a condition over them.
  static let fcmTopics = "/topics/\(name){1,900}|['(!].*"

  static let device =
    "apns:\(hexPairs)|fcm:(?!fid:)\(fcmToken)|fid:\(installationID)|webpush:[A-Za-z0-9_\\-]+|\(registration)|\(evenHex)"
    + "|\(bareToken)"

  /// The forms of a subscription's values. A public key begins with the byte 4; the last letter of each has no stray bits.
  static let publicKey = "B[A-P]\(base64){84}[AEIMQUYcgkosw048]={0,2}"
  static let authSecret = "\(base64){21}[AQgw]={0,2}"
  private static let base64 = "[A-Za-z0-9+/_\\-]"
  static let endpoint =
    "^https://(?!permanently-removed\\.invalid[:/])([A-Za-z0-9._\\-]{1,253}|\\[[0-9a-fA-F:.]+\\])(:\(port))?/[!\"$-~]*$"
  private static let port =
    "0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
  /// An endpoint that names a device.
  static let endpointReference = "https://[!-~]{0,2040}"
  static let channelID = "[A-Za-z0-9+/=_\\-]{1,256}"
  static let channel = "apns-channel:\(channelID)"
  static let addressee = "\(channel)|fcm:(\(fcmTopics))|/users/\(userID)|\(notificationKey)|\(device)"
  static let severalDevices =
    "/all|/topics/\(topicName)|/users/\(userID)|\(notificationKey)|\(channel)|fcm:(\(fcmTopics))"
  static let token = "^(\(addressee))$"
  static let to = "^(/all|/topics/\(topicName)|\(addressee))$"

  /// Matches whole numbers from 0 to `most` with up to `digits` digits including leading zeros, followed by `then`.
  static func atMost(_ most: Int, digits: Int, then: String = "") -> String {
    let figures = String(most).map(String.init)
    var forms = ["[0-9]{1,\(figures.count - 1)}"]
    for (index, figure) in figures.enumerated() {
      guard let value = Int(figure), value > 0 else { continue }
      let rest = figures.count - index - 1
      let lower = value == 1 ? "0" : "[0-\(value - 1)]"
      forms.append(figures[..<index].joined() + lower + (rest > 0 ? "[0-9]{\(rest)}" : ""))
    }
    forms.append(String(most))
    return "^(?=[0-9]{1,\(digits)}(?![0-9]))0*(\(forms.joined(separator: "|")))\(then)$"
  }
}
