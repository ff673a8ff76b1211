import PushCore
import Reactor
import Settings

/// Reads requests from files with one JSON object, or one per line. Other lines are reported with their place and skipped.
final class RequestFiles {
  struct Request {
    /// A new id, so that workers recognise a second publication after a lost connection.
    var id: [UInt8]
    var body: [UInt8]
    /// File and line, for error messages.
    var place: String
  }

  private var files: ArraySlice<String>
  private var lines: LineReader?
  private(set) var bytesRead = 0
  /// 0 if unknown.
  let totalBytes: Int
  var complain: (String) -> Void = Terminal.notice
  private(set) var refused = 0
  private(set) var isAtEnd = false
  /// Why a file is not read to its end, nor those after it.
  private(set) var problem: CommandFailure?
  /// The input to wait for before the next request; nil if none.
  var awaited: InputDescriptor? { lines.flatMap { $0.isWaiting ? $0.input : nil } }
  /// File and line of the next line; nil before the first.
  private(set) var place: String?
  private let limits: JSONLimits
  /// True if each request must name its application.
  private let namesApp: Bool
  /// Replaces standard input, which can be read only once.
  private let input: [UInt8]?

  init(_ files: [String], limits: JSONLimits, namesApp: Bool = false, input: [UInt8]? = nil) throws(CommandFailure) {
    self.limits = limits
    self.namesApp = namesApp
    self.input = input
    for file in files where file != "-" {
      let reason = SafeText.reason(file)
      guard reason.isEmpty else { throw CommandFailure(.badInput, "\(SafeText.path(file)) cannot be read\(reason)") }
    }
    totalBytes = ProgressBar.total(of: files)
    self.files = files[...]
  }

  /// nil at the end, and while input must be awaited.
  func next() -> Request? {
    while !isAtEnd {
      guard let reader = lines else {
        guard let file = files.popFirst() else {
          isAtEnd = true
          return nil
        }
        lines = LineReader(file, input: input)
        continue
      }
      guard let line = reader.next() else {
        if reader.isWaiting { return nil }
        lines = nil
        problem = reader.problem
        if problem != nil { files = [] }
        continue
      }
      bytesRead += line.bytes.count + 1
      place = "\(reader.name), line \(line.number + 1)"
      if line.bytes.allSatisfy(LineReader.isSpace) { continue }
      if let problem = problem(in: line.bytes) {
        refused += 1
        complain("\(reader.name), line \(line.number): \(problem)")
        continue
      }
      return Request(id: UUIDText.random(), body: line.bytes, place: "\(reader.name), line \(line.number)")
    }
    return nil
  }

  /// True if the request, in GCM's or FCM v1's shape, names its application. Nothing else is checked.
  private static func namesPackage(_ document: JSONDocument) -> Bool {
    let message = document.value("message", of: document.root)
    let places = [document.root] + ["android", "android_v2"].map { name in message.flatMap { document.value(name, of: $0) } }
    return places.contains { place in
      guard let place, document.kind(place) == .object else { return false }
      return ["restricted_package_name", "restrictedPackageName"].contains { document.value($0, of: place) != nil }
    }
  }

  private func problem(in bytes: [UInt8]) -> String? {
    do {
      let document = try JSONDocument(bytes, limits: limits)
      guard document.kind(document.root) == .object else { return "not a JSON object" }
      guard namesApp, !Self.namesPackage(document) else { return nil }
      return "several applications are configured, and the request names none: use --app or restricted_package_name"
    } catch {
      return "\(error)"
    }
  }
}
