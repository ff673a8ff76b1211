/// The positions of settings in a file.
struct JSON5Places {
  struct Place {
    /// From 1; the column counts characters.
    var line: Int
    var column: Int
  }

  private var places: [String: Place]

  init(_ places: [String: Place] = [:]) { self.places = places }

  /// The position of the setting, or of the innermost object that would contain it.
  func place(ofNearest name: String) -> Place? {
    if let place = places[name] ?? places[name + "File"] { return place }
    let holder = places.keys.filter { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "[") }.max { $0.count < $1.count }
    return holder.flatMap { places[$0] }
  }
}
