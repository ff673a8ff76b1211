import CNGHTTP2

/// The header list that all requests of one kind share, laid out once as nghttp2 wants it.
///
/// Names and constant values live in memory that is never moved, so nghttp2 copies neither; the variable values of a
/// request are copied from a `HeaderValues`. Pseudo-headers are put first, whatever the order given (RFC 9113 §8.3).
public final class HeaderTemplate {
  let fields: UnsafeMutablePointer<nghttp2_nv>
  let count: Int
  /// Where variable header `i` stands in `fields`; ascending beyond `firstOptional`.
  let places: [Int]
  /// From this field on only variable headers follow: absent ones are closed up here.
  let firstOptional: Int
  private let storage: UnsafeMutablePointer<UInt8>
  private let nameOf: [(bytes: UnsafeMutablePointer<UInt8>, count: Int, flags: UInt8)]

  /// - Parameters:
  ///   - constant: names in lower case with their values.
  ///   - variable: names in the order in which `HeaderValues` gives them. Pseudo-headers among them are never absent.
  ///   - unindexed: names of variable headers whose values differ from request to request: after a connection's first
  ///     request they don't enter the compression table and so don't push out what repeats (RFC 7541 §6.2).
  public init(constant: [(String, String)], variable: [String], unindexed: [String] = []) {
    let isPseudo = { (name: String) in name.utf8.first == UInt8(ascii: ":") }
    var layout: [(name: String, value: String?, variable: Int?)] = []
    layout += constant.filter { isPseudo($0.0) }.map { ($0.0, $0.1, nil) }
    layout += variable.enumerated().filter { isPseudo($0.element) }.map { ($0.element, nil, $0.offset) }
    layout += constant.filter { !isPseudo($0.0) }.map { ($0.0, $0.1, nil) }
    firstOptional = layout.count
    layout += variable.enumerated().filter { !isPseudo($0.element) }.map { ($0.element, nil, $0.offset) }

    count = layout.count
    fields = .allocate(capacity: count)
    let size = layout.reduce(0) { $0 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) }
    storage = .allocate(capacity: max(size, 1))
    var end = storage
    func store(_ text: String) -> (UnsafeMutablePointer<UInt8>, Int) {
      let start = end
      for byte in text.utf8 {
        end.initialize(to: byte)
        end += 1
      }
      return (start, text.utf8.count)
    }
    var places = [Int](repeating: 0, count: variable.count)
    var names: [(bytes: UnsafeMutablePointer<UInt8>, count: Int, flags: UInt8)] = []
    names.reserveCapacity(variable.count)
    var nameAt = [Int: (UnsafeMutablePointer<UInt8>, Int)]()
    for (index, field) in layout.enumerated() {
      let (name, nameCount) = store(field.name)
      var flags = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
      var value: (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
      if let constant = field.value {
        value = store(constant)
        flags |= UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
      }
      if let variable = field.variable {
        places[variable] = index
        nameAt[variable] = (name, nameCount)
      }
      fields.advanced(by: index).initialize(
        to: nghttp2_nv(name: name, value: value.0, namelen: nameCount, valuelen: value.1, flags: flags))
    }
    for (index, name) in variable.enumerated() {
      let (bytes, nameCount) = nameAt[index]!
      var flags = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
      if unindexed.contains(name) { flags |= UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) }
      names.append((bytes, nameCount, flags))
    }
    self.places = places
    nameOf = names
  }

  deinit {
    fields.deallocate()
    storage.deallocate()
  }

  public var variableCount: Int { places.count }

  /// Fills in `values` and hands the finished list to `body`; the list lives for that call only.
  /// - Parameter indexing: true for the first request of a connection, whose names enter the compression table.
  func withFields<R>(
    _ values: borrowing HeaderValues, indexing: Bool, _ body: (UnsafePointer<nghttp2_nv>, Int) -> R
  ) -> R {
    precondition(values.ends.count == places.count, "one value, or absence, per variable header of the template")
    let mask = indexing ? ~UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : ~0
    return values.bytes.withUnsafeBufferPointer { bytes in
      let base = UnsafeMutablePointer(mutating: bytes.baseAddress)
      var start = 0
      var next = firstOptional
      for index in places.indices {
        let end = values.ends[index]
        if end < 0 {
          precondition(places[index] >= firstOptional, "a pseudo-header can't be absent")
          continue
        }
        var place = places[index]
        if place >= firstOptional {
          place = next
          next += 1
        }
        let name = nameOf[index]
        fields[place] = nghttp2_nv(
          name: name.bytes, value: base.map { $0 + start }, namelen: name.count, valuelen: end - start,
          flags: name.flags & mask)
        start = end
      }
      return body(fields, next)
    }
  }
}
