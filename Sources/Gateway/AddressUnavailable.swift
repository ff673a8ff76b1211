/// A door can't be opened now, but perhaps later. The command exits with status 69, so that a supervisor starts it again.
struct AddressUnavailable: Error, CustomStringConvertible {
  /// The setting that names the address.
  let setting: String
  let reason: String

  var description: String { "\(setting) can't be used now: \(reason)" }
}
