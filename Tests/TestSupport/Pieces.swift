/// Bytes that come in pieces, as a stream's do.
public enum Pieces {
  /// What a reader makes of them.
  public struct Reading<Frame, Refusal: Error> {
    public var frames: [Frame] = []
    /// The last one.
    public var refusal: Refusal?
    /// It was given bytes, and used none.
    public var isStuck = false
  }

  /// - Parameters:
  ///   - cut: bytes of each piece.
  ///   - next: takes what it can of a piece from an offset on, and moves that; nil where the piece has no whole frame.
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
