/// The nine-byte frame header (RFC 9113 §4.1), for frames with our own header blocks.
enum FrameHeader {
  static let size = 9
  /// The payload size that every peer accepts (RFC 9113 §4.2).
  static let payloadLimit = 16_384
  private static let endHeaders: UInt8 = 0x4
  private static let continuation: UInt8 = 0x9

  static func setLength(_ length: Int, in output: inout [UInt8], at start: Int) {
    output[start] = UInt8(length >> 16)
    output[start + 1] = UInt8(length >> 8 & 0xFF)
    output[start + 2] = UInt8(length & 0xFF)
  }

  /// Splits the HEADERS frame at the end of `output` into a HEADERS frame and CONTINUATION frames (RFC 9113 §6.10).
  static func split(_ output: inout [UInt8], from start: Int) {
    let block = Array(output[(start + size)...])
    output.removeSubrange((start + size)...)
    var header = Array(output[start...])
    header[4] &= ~endHeaders
    output.removeSubrange(start...)
    var sent = 0
    while sent < block.count {
      let length = min(payloadLimit, block.count - sent)
      let at = output.count
      output.append(contentsOf: header)
      setLength(length, in: &output, at: at)
      output.append(contentsOf: block[sent..<sent + length])
      sent += length
      if sent == block.count { output[at + 4] |= endHeaders }
      header[3] = continuation
      header[4] = 0
    }
  }
}
