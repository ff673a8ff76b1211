/// A door can't be opened now, and perhaps later: the command exits with status 69, so that it is started again.
struct PlaceTaken: Error, CustomStringConvertible {
  /// The setting that names the place.
  let setting: String
  let reason: String

  var description: String { "\(setting) can't be used now: \(reason)" }
}
