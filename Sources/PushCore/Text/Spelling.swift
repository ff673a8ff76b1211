/// Suggests the known word that a misspelled word was meant to be.
public enum Spelling {
  /// `: did you mean title?`, the end of an error message. Empty if no known word is near.
  public static func suggestion(for word: String, among known: [String], longest: Int = 64) -> String {
    nearest(to: word, among: known, longest: longest).map { ": did you mean \($0)?" } ?? ""
  }

  /// The nearest known word: equal in another letter case, a few letters apart, or contained in `word`. Nil if none is near.
  /// - Parameter longest: bytes; a longer word gets no suggestion.
  public static func nearest(to word: String, among known: [String], longest: Int = 64) -> String? {
    guard word.utf8.count <= longest else { return nil }
    let word = word.lowercased()
    if let same = known.first(where: { $0.lowercased() == word }) { return same }
    let most = max(1, min(word.count / 3, 3))
    let letters = Array(word.utf8)
    let near = known.map { (word: $0, letters: Array($0.lowercased().utf8)) }
      .filter { abs($0.letters.count - letters.count) <= most }
      .map { (word: $0.word, distance: distance(letters, $0.letters)) }
    if let nearest = near.min(by: { $0.distance < $1.distance }), nearest.distance <= most { return nearest.word }
    return known.filter { $0.count > 3 && word.contains($0.lowercased()) }.max { $0.count < $1.count }
  }

  /// Edit distance in bytes: insertions, deletions, replacements and swaps of neighbours.
  public static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for (row, letter) in a.enumerated() {
      var current = [row + 1]
      for (column, other) in b.enumerated() {
        var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
        if row > 0, column > 0, letter == b[column - 1], a[row - 1] == other { best = min(best, beforeLast[column - 1] + 1) }
        current.append(best)
      }
      (beforeLast, last) = (last, current)
    }
    return last[b.count]
  }
}
