import CBuild

/// What the program was built from.
enum Build {
  static let version = "0.1.0"

  /// Nil where whoever built it named no commit.
  static let commit: String? = {
    let text = unsafe String(cString: build_commit())
    return text.isEmpty ? nil : text
  }()
}
