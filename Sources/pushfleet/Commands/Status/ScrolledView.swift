/// Scrolls lines on a screen that is too short for them.
struct ScrolledView {
  enum Move {
    case up, down, pageUp, pageDown, home
  }

  /// First visible line; may be too large until the next drawing.
  private var top = 0
  private var room = 20

  mutating func move(_ move: Move) {
    switch move {
    case .up: top -= 1
    case .down: top += 1
    case .pageUp: top -= max(1, room - 1)
    case .pageDown: top += max(1, room - 1)
    case .home: top = 0
    }
    top = max(0, top)
  }

  /// - Returns: exactly `height` lines, the last of them the foot.
  mutating func screen(_ lines: [String], width: Int, height: Int, foot: String) -> [String] {
    room = max(0, height - 1)
    top = min(top, max(0, lines.count - room))
    var shown = Array(lines.dropFirst(top).prefix(room))
    let below = lines.count - top - shown.count
    shown += Array(repeating: "", count: room - shown.count)
    let more = top + below == 0 ? "" : "; \(top) lines above, \(below) below: arrows"
    return (shown + [String((foot + more).prefix(width))]).suffix(max(0, height))
  }
}

enum TerminalKey: Equatable {
  case quit, pools
  case move(ScrolledView.Move)

  /// Parses terminal input; unknown bytes are ignored.
  static func read(_ bytes: [UInt8]) -> [TerminalKey] {
    var keys: [TerminalKey] = []
    var rest = bytes[...]
    while let first = rest.first {
      if let (sequence, key) = sequences.first(where: { rest.starts(with: $0.bytes) }) {
        rest = rest.dropFirst(sequence.count)
        keys.append(key)
      } else {
        rest = rest.dropFirst()
        // Skip unknown escape sequences as a whole.
        if first == 0x1B, [0x5B, 0x4F].contains(rest.first) {
          rest = rest.dropFirst()
          rest = rest.drop { (0x20...0x3F).contains($0) }.dropFirst()
        }
      }
    }
    return keys
  }

  private static let sequences: [(bytes: [UInt8], key: TerminalKey)] = {
    let plain: [(String, TerminalKey)] = [
      ("q", .quit), ("Q", .quit), ("\u{3}", .quit), ("\u{4}", .quit), ("p", .pools), ("P", .pools), ("k", .move(.up)),
      ("j", .move(.down)), (" ", .move(.pageDown)), ("g", .move(.home)),
    ]
    let escaped: [(String, TerminalKey)] = [
      ("[A", .move(.up)), ("OA", .move(.up)), ("[B", .move(.down)), ("OB", .move(.down)), ("[5~", .move(.pageUp)),
      ("[6~", .move(.pageDown)), ("[H", .move(.home)), ("OH", .move(.home)), ("[1~", .move(.home)),
    ]
    return (plain + escaped.map { ("\u{1B}" + $0.0, $0.1) }).map { (Array($0.0.utf8), $0.1) }
  }()
}
