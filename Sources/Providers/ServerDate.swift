/// The header `date` (RFC 9110 §6.6.1), for telling an operator that the clock is wrong.
enum ServerDate {
  static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Seconds by which the server's clock is ahead of `wallClock` (UNIX milliseconds); nil for another form than
  /// `Fri, 20 Nov 2026 21:22:00 GMT`.
  static func offset(of field: [UInt8], wallClock: Int64) -> Int? {
    let words = String(decoding: field.prefix(40), as: UTF8.self).split(separator: " ")
    guard words.count == 6, let day = Int(words[1]), let month = months.firstIndex(of: String(words[2])),
      let year = Int(words[3]), (1...31).contains(day), (1970...9999).contains(year)
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { Int($0) }
    guard clock.count == 3, clock.allSatisfy({ (0...60).contains($0) }) else { return nil }
    let seconds = days(year, month + 1, day) * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    return seconds - Int(wallClock / 1000)
  }

  /// Days from 1970-01-01 to a date of the Gregorian calendar; the year is counted from March.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
  }
}
