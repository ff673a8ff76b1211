import CBuild

enum Build {
  static let version = "0.1.0"

  /// The source commit; nil if the build didn't name one.
  static let commit: String? = {
    let text = unsafe String(cString: build_commit())
    return text.isEmpty ? nil : text
  }()
}
