/// Reads the three date forms of RFC 9110 §5.6.7. Ignores the day of the week; the zone is always UTC.
///
///     Fri, 20 Nov 2026 21:22:00 GMT    Friday, 20-Nov-26 21:22:00 GMT    Fri Nov 20 21:22:00 2026
public enum HTTPDate {
  public static func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
    let words = text.split(whereSeparator: { $0 == 0x20 || $0 == 0x2D || $0 == 0x2C })
    switch words.count {
    case 6:
      // The words of both forms: weekday, day, month, year, time, GMT.
      guard words[5].elementsEqual("GMT".utf8), let year = number(words[3]) else { return nil }
      return instant(year: words[3].count == 2 ? (year < 70 ? 2000 : 1900) + year : year, words[2], words[1], words[4])
    case 5:
      guard let year = number(words[4]) else { return nil }
      return instant(year: year, words[1], words[2], words[3])
    default: return nil
    }
  }

  private static func instant(
    year: Int64, _ month: ArraySlice<UInt8>, _ day: ArraySlice<UInt8>, _ time: ArraySlice<UInt8>
  ) -> Int64? {
    let clock = time.split(separator: 0x3A, omittingEmptySubsequences: false).map(number)
    guard let month = months.firstIndex(where: { month.elementsEqual($0.utf8) }), let day = number(day),
      1...31 ~= day, 1970...9999 ~= year, clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2],
      hour < 24, minute < 60, second < 61
    else { return nil }
    return Timestamp.days(year: year, month: Int64(month) + 1, day: day) * 86_400 + hour * 3600 + minute * 60 + second
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard 1...4 ~= digits.count, digits.allSatisfy(Bytes.isDigit) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int64($1 &- 0x30) }
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
