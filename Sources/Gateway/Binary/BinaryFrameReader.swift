/// Reads frames of commands 0, 1 and 2 (Apple, "Legacy Notification Format" and "Binary Provider API") from a byte stream.
///
/// Keeps at most one token and one payload of allowed sizes. Skips an item that is too long, because the identifier, which the
/// error response needs, may follow it.
struct BinaryFrameReader {
  enum Part: Equatable {
    /// The first byte of a frame.
    case command
    /// Commands 0 and 1: for command 1 the first part, then the token and the payload, each after its length.
    case identifierAndExpiry
    case length(BinaryItem)
    case content(BinaryItem)
    /// Command 2.
    case frameLength, itemHeader
    case item(BinaryItem)
    case skipped
  }

  /// Bytes of a frame with all five items.
  static let longestFrame = 5 * (3 + Int(UInt16.max))

  private var part = Part.command
  /// Size of the current part and how many of its bytes have arrived.
  private var size = 1
  private var done = 0
  /// Bytes of the current part, unless it is skipped.
  private var bytes: [UInt8] = []
  private var frame = BinaryFrame()
  /// Bytes of command 2's frame after the current part.
  private var rest = 0
  private var items: Set<BinaryItem> = []
  /// Faults found so far in command 2's frame.
  private var faults: Set<BinaryStatus> = []
  private(set) var hasFailed = false

  var isInFrame: Bool { part != .command }

  /// Reads from `offset` up to the end of one frame, and moves `offset` past the bytes it has used.
  /// - Returns: nil if all bytes are used and no frame has ended.
  mutating func next(_ input: [UInt8], _ offset: inout Int) throws(BinaryRefusal) -> BinaryFrame? {
    while !hasFailed {
      let taken = min(size - done, input.count - offset)
      if part != .skipped { bytes.append(contentsOf: input[offset..<offset + taken]) }
      offset += taken
      done += taken
      guard done == size else { return nil }
      do throws(BinaryRefusal) {
        if try endPart() { return takeFrame() }
      } catch {
        hasFailed = true
        bytes = []
        throw error
      }
    }
    offset = input.count
    return nil
  }

  private mutating func begin(_ part: Part, _ size: Int) {
    self.part = part
    self.size = size
    done = 0
    bytes.removeAll(keepingCapacity: true)
  }

  private mutating func takeFrame() -> BinaryFrame {
    let whole = frame
    frame = BinaryFrame()
    items = []
    faults = []
    begin(.command, 1)
    // Free the memory: an idle connection must hold none.
    bytes = []
    return whole
  }

  private var number: UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

  private func refusal(_ status: BinaryStatus) -> BinaryRefusal {
    BinaryRefusal(status: status, identifier: frame.identifier, isSilent: frame.isSimple)
  }

  /// - Returns: true if the frame is complete.
  private mutating func endPart() throws(BinaryRefusal) -> Bool {
    switch part {
    case .command: try readCommand()
    case .identifierAndExpiry:
      frame.identifier = bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
      frame.expiry = bytes.suffix(4).reduce(0) { $0 << 8 | UInt32($1) }
      begin(.length(.token), 2)
    case .length(let item):
      if let status = item.fault(ofSize: Int(number)) { throw refusal(status) }
      begin(.content(item), Int(number))
    case .content(let item):
      store(item)
      if item == .payload { return true }
      begin(.length(.payload), 2)
    case .frameLength:
      guard number <= Self.longestFrame else { throw refusal(.protocolError) }
      rest = Int(number)
      return try beginItem()
    case .itemHeader: try readItemHeader()
    case .item(let item):
      store(item)
      return try beginItem()
    case .skipped: return try beginItem()
    }
    return false
  }

  private mutating func readCommand() throws(BinaryRefusal) {
    switch bytes[0] {
    case 0:
      frame.isSimple = true
      begin(.length(.token), 2)
    case 1: begin(.identifierAndExpiry, 8)
    case 2: begin(.frameLength, 4)
    default: throw refusal(.protocolError)
    }
  }

  // MARK: command 2

  /// - Returns: true if there is no further item and the frame has the required ones.
  private mutating func beginItem() throws(BinaryRefusal) -> Bool {
    guard rest == 0 else {
      guard rest >= 3 else { throw refusal(.protocolError) }
      rest -= 3
      begin(.itemHeader, 3)
      return false
    }
    if !items.contains(.token) { faults.insert(.missingToken) }
    if !items.contains(.payload) { faults.insert(.missingPayload) }
    // An unreadable item takes precedence over a wrong one.
    if faults.contains(.protocolError) { throw refusal(.protocolError) }
    if let first = faults.min(by: { $0.rawValue < $1.rawValue }) { throw refusal(first) }
    return true
  }

  private mutating func readItemHeader() throws(BinaryRefusal) {
    let size = Int(bytes[1]) << 8 | Int(bytes[2])
    guard size <= rest else { throw refusal(.protocolError) }
    rest -= size
    guard let item = BinaryItem(rawValue: bytes[0]), items.insert(item).inserted else {
      faults.insert(.protocolError)
      return begin(.skipped, size)
    }
    if let fault = item.fault(ofSize: size) {
      faults.insert(fault)
      return begin(.skipped, size)
    }
    begin(.item(item), size)
  }

  private mutating func store(_ item: BinaryItem) {
    switch item {
    case .token: frame.token = bytes
    case .payload: frame.payload = bytes
    case .identifier: frame.identifier = number
    case .expiration: frame.expiry = number
    case .priority:
      frame.priority = bytes[0]
      if bytes[0] != 10, bytes[0] != 5 { faults.insert(.unknown) }
    }
  }
}

/// The items of a frame of command 2. Each may occur once.
enum BinaryItem: UInt8, Sendable {
  case token = 1
  case payload, identifier, expiration, priority

  /// The fault of an item with this many bytes; nil if the size is right.
  func fault(ofSize size: Int) -> BinaryStatus? {
    switch self {
    case .token: size == 0 ? .missingToken : BinaryFrame.tokenSizes.contains(size) ? nil : .invalidTokenSize
    case .payload: size == 0 ? .missingPayload : size <= BinaryFrame.payloadLimit ? nil : .invalidPayloadSize
    case .identifier, .expiration: size == 4 ? nil : .protocolError
    case .priority: size == 1 ? nil : .protocolError
    }
  }
}
