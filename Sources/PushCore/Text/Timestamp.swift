/// Times of outcomes: RFC 3339 in UTC with milliseconds, `2026-11-20T21:22:00.123Z`.
public enum Timestamp {
  /// - Parameter milliseconds: since 1970; clamped to the years 1970…9999.
  public static func append(_ milliseconds: Int64, to bytes: inout [UInt8]) {
    let clamped = min(max(milliseconds, 0), latest)
    let (date, time) = (clamped / 86_400_000, clamped % 86_400_000)
    let (year, month, day) = civil(daysSince1970: date)
    append(year, digits: 4, then: "-", to: &bytes)
    append(month, digits: 2, then: "-", to: &bytes)
    append(day, digits: 2, then: "T", to: &bytes)
    append(time / 3_600_000, digits: 2, then: ":", to: &bytes)
    append(time / 60_000 % 60, digits: 2, then: ":", to: &bytes)
    append(time / 1000 % 60, digits: 2, then: ".", to: &bytes)
    append(time % 1000, digits: 3, then: "Z", to: &bytes)
  }

  public static func text(_ milliseconds: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(24)
    append(milliseconds, to: &bytes)
    return bytes
  }

  /// The Unix milliseconds of an RFC 3339 `date-time` with `T`, any offset and at most nine fractional digits; nil if the text
  /// isn't one, or has no valid date.
  public static func milliseconds(of text: [UInt8]) -> Int64? {
    let form = Array("0000-00-00T00:00:00".utf8)
    guard text.count > form.count, zip(text, form).allSatisfy({ $1 == 0x30 ? Bytes.isDigit($0) : $0 == $1 }) else { return nil }
    func number(_ range: Range<Int>) -> Int64 { text[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) } }
    let (year, month, day) = (number(0..<4), number(5..<7), number(8..<10))
    let (hour, minute, second) = (number(11..<13), number(14..<16), number(17..<19))
    guard (1...12).contains(month), hour < 24, minute < 60, second <= 60 else { return nil }
    let first = days(year: year, month: month, day: 1)
    let next = month == 12 ? first + 31 : days(year: year, month: month + 1, day: 1)
    guard (1...next - first).contains(day) else { return nil }
    var rest = text[form.count...]
    var fraction: Int64 = 0
    if rest.first == 0x2E {
      let digits = rest.dropFirst().prefix(while: Bytes.isDigit)
      guard (1...9).contains(digits.count) else { return nil }
      fraction = (digits + [0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int64($1 - 0x30) }
      rest = rest.dropFirst(1 + digits.count)
    }
    let seconds = (first + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    if rest.elementsEqual("Z".utf8) { return seconds * 1_000 + fraction }
    let start = rest.startIndex
    guard rest.count == 6, rest[start] == 0x2B || rest[start] == 0x2D, rest[start + 3] == 0x3A,
      [1, 2, 4, 5].allSatisfy({ Bytes.isDigit(rest[start + $0]) })
    else { return nil }
    let (hours, minutes) = (number(start + 1..<start + 3), number(start + 4..<start + 6))
    guard hours < 24, minutes < 60 else { return nil }
    let offset = hours * 3_600 + minutes * 60
    return (rest[start] == 0x2D ? seconds + offset : seconds - offset) * 1_000 + fraction
  }

  static let latest: Int64 = 253_402_300_799_999

  /// Days since 1970-01-01 of a proleptic Gregorian date; month and day count from 1.
  static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    // The year starts in March here, so that the leap day is its last day. 400 years have 146,097 days.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = daysSince1970 + 719_468
    let era = shifted / 146_097
    let dayOfEra = shifted % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (
      era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
  }

  @inline(__always)
  private static func append(_ value: Int64, digits: Int, then mark: Unicode.Scalar, to bytes: inout [UInt8]) {
    var unit: Int64 = 1
    for _ in 1..<digits { unit *= 10 }
    while unit > 0 {
      bytes.append(0x30 &+ UInt8(truncatingIfNeeded: value / unit % 10))
      unit /= 10
    }
    bytes.append(UInt8(ascii: mark))
  }
}
