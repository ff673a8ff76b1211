/// Feeds bytes to a reader in pieces.
public enum Pieces {
  public struct Reading<Frame, Refusal: Error> {
    public var frames: [Frame] = []
    public var refusal: Refusal?
    /// True if the reader used none of the bytes it got.
    public var isStuck = false
  }

  /// - Parameters:
  ///   - cut: bytes of each piece.
  ///   - next: reads from the offset, which it moves; nil if the piece has no complete frame.
  public static func read<Frame, Refusal: Error>(
    _ bytes: [UInt8], cut: Int, next: ([UInt8], inout Int) throws(Refusal) -> Frame?
  ) -> Reading<Frame, Refusal> {
    var reading = Reading<Frame, Refusal>()
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(cut))
      rest = rest.dropFirst(cut)
      var offset = 0
      while offset < piece.count {
        let before = offset
        do throws(Refusal) {
          guard let frame = try next(piece, &offset) else { break }
          reading.frames.append(frame)
        } catch {
          reading.refusal = error
        }
        if offset == before {
          reading.isStuck = true
          break
        }
      }
    }
    return reading
  }
}
