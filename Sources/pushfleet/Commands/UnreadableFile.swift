import Foundation
import Settings

extension SafeText {
  /// Why a file can't be read, as the end of a sentence that names it.
  static func reason(_ path: String) -> String {
    guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return ": there is no such file" }
    if facts[.type] as? FileAttributeType == .typeDirectory { return ": it is a folder" }
    return FileManager.default.isReadableFile(atPath: path) ? "" : ": permission denied"
  }
}
