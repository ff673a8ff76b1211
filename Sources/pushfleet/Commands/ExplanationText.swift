import PushCore

extension Explanation {
  /// - Parameter hasColour: highlights dropped and cut fields.
  func text(withBar: Bool, width: Int = .max, hasColour: Bool = false) -> String {
    var paragraphs = [Self.wrapped(heading, width)]
    if let rejection { paragraphs.append(Self.indented(refusalLines(rejection, width))) }
    for view in views {
      let title = view.way.words + "\n"
      switch view.outcome {
      case .failure(let rejection): paragraphs.append(title + Self.indented(refusalLines(rejection, width)))
      case .success(let sending):
        paragraphs.append(title + Self.indented(Self.requestLines(sending)))
        paragraphs.append(Self.indented(Self.payloadLines(sending, withBar: withBar && width >= Self.widthWithBar)))
        paragraphs.append(Self.indented(Self.lossLines(sending.losses.entries, width, hasColour)))
      }
    }
    if let hint { paragraphs.append(Self.wrapped(hint.prefix(1).uppercased() + hint.dropFirst() + ".", width)) }
    return paragraphs.joined(separator: "\n\n")
  }

  private var heading: String {
    let moment = Figures.moment(now)
    guard let request else { return "A refused request" }
    let shape = request.shape == .gcm ? "GCM's shape" : "FCM v1's shape"
    return "A request in \(shape) to \(Self.words(request.targets)), published "
      + (published == now
        ? "and sent \(moment)" : "\(Figures.moment(published)), sent \(moment)")
      + (request.isDryRun ? ", a dry run" : "")
  }

  private static func words(_ targets: Targets) -> String {
    switch targets {
    case .one(.apns): "an APNs token"
    case .one(.fcm(let token)): FCMAddress(token) == .installation ? "a Firebase installation" : "an FCM token"
    case .one(.channel): "a broadcast channel of APNs"
    case .one(.fcmTopics): "topics that FCM keeps"
    case .one(.webpush): "a browser's subscription"
    case .one(.topic(let name)): "the topic \(String(decoding: name, as: UTF8.self))"
    case .one(.all): "all devices of the application"
    case .one(.user): "a user's devices"
    case .one(.group): "a device group"
    case .one(.registration): "a registered device"
    case .one(.invalid): "nobody"
    case .list(let targets): "a list of \(targets.count) target\(targets.count == 1 ? "" : "s")"
    case .condition(let condition): "a condition over \(condition.topics.count) topic\(condition.topics.count == 1 ? "" : "s")"
    }
  }

  private static func requestLines(_ sending: Sending) -> [String] {
    ["POST \(sending.path)"]
      + FactList.lines(sending.headers.map { ($0.name, $0.value + ($0.note.map { " (\($0))" } ?? "")) })
  }

  private static let widthWithBar = 72

  private static func payloadLines(_ sending: Sending, withBar: Bool) -> [String] {
    // Deeper than a request's limit, because a payload nests the request's data.
    let document = try? JSONDocument(sending.payload, limits: JSONLimits(bytes: 1 << 24, depth: 64))
    let payload = document.map { $0.indented($0.root) } ?? ""
    let percent = sending.bytes * 100 / sending.limit
    let filled = min((sending.bytes * 20 + sending.limit - 1) / sending.limit, 20)
    let bar = withBar ? " " + ProgressBar.bar(filled, of: 20) : ""
    return payload.split(separator: "\n").map(String.init)
      + ["", "\(sending.bytes) of \(sending.limit) bytes of \(sending.counted),\(bar) \(percent) %"]
  }

  private static func lossLines(_ losses: [LossReport.Entry], _ width: Int, _ hasColour: Bool) -> [String] {
    guard !losses.isEmpty else { return ["Nothing converted, cut, emulated or dropped."] }
    let name = (losses.map(\.action.rawValue.count).max() ?? 0) + 2
    let margin = String(repeating: " ", count: name)
    return losses.flatMap { loss in
      let isLoss = loss.action == .dropped || loss.action == .cut
      let action = loss.action.rawValue.padded(to: name)
      return WrappedText.lines(
        "\(loss.field): \(loss.words) [\(loss.rule)]", first: hasColour && isLoss ? "\u{1B}[33m\(action)\u{1B}[0m" : action,
        rest: margin, width: width == .max ? .max : width - indentation)
    }
  }

  private func refusalLines(_ rejection: Rejection, _ width: Int) -> [String] {
    ["\(rejection.code == .nothingForPlatform ? "not sent" : "refused"): \(rejection.code.rawValue)"]
      + WrappedText.lines(rejection.reason, room: WrappedText.room(width: width, margin: Self.indentation))
      + (RefusedPlace(rejection.reason, in: source)?.lines ?? [])
  }

  private static let indentation = 2

  private static func indented(_ lines: [String]) -> String {
    lines.map { $0.isEmpty ? "" : String(repeating: " ", count: indentation) + $0 }.joined(separator: "\n")
  }

  private static func wrapped(_ sentence: String, _ width: Int) -> String {
    WrappedText.lines(sentence, room: WrappedText.room(width: width)).joined(separator: "\n")
  }
}

/// The place in the source that a reason such as `… at byte 28` names.
struct RefusedPlace {
  /// From 1; the column counts characters.
  let line: Int
  let column: Int
  /// The line around the place, cut to `width` characters, and the place's position in terminal cells.
  private let excerpt: String
  private let pointer: Int
  private static let width = 72

  init?(_ reason: String, in source: [UInt8]) {
    guard let range = reason.range(of: " at byte ", options: .backwards),
      let offset = Int(reason[range.upperBound...].prefix { $0.isNumber }),
      offset <= source.count
    else { return nil }
    let start = source[..<offset].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let end = source[offset...].firstIndex(of: 0x0A) ?? source.count
    line = source[..<offset].count { $0 == 0x0A } + 1
    let before = Self.shown(source[start..<offset])
    column = before.count + 1
    let kept = before.suffix(Self.width * 2 / 3)
    excerpt = String(kept + Self.shown(source[offset..<end]).prefix(Self.width - kept.count))
    pointer = kept.reduce(0) { $0 + Self.cells($1) }
  }

  /// Replaces characters that a terminal would interpret.
  private static func shown(_ bytes: ArraySlice<UInt8>) -> [Character] {
    String(decoding: bytes, as: UTF8.self).map { character in
      character.unicodeScalars.contains(where: \.isDeceptive) ? "·" : character
    }
  }

  /// East Asian characters and pictographs occupy two cells.
  private static func cells(_ character: Character) -> Int {
    switch character.unicodeScalars.first?.value ?? 0 {
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
      0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      2
    default: 1
    }
  }

  var lines: [String] {
    ["line \(line), column \(column):", "  " + excerpt, "  " + String(repeating: " ", count: pointer) + "^"]
  }
}
