import PushCore
import Wire

/// A form of GCM's first interface, converted to JSON: `registration_id=…&collapse_key=…&data.x=…`.
struct GCMForm {
  let json: [UInt8]

  /// Nil if the form names no registration.
  init?(_ body: [UInt8]) throws(Fault) {
    guard let fields = PercentEncoding.fields(body) else { throw .badRequest("the form can't be read") }
    var line = JSONObjectWriter()
    var data: [(name: [UInt8], value: [UInt8])] = []
    var seen: Set<[UInt8]> = []
    for (name, value) in fields where seen.insert(name).inserted {
      if name.starts(with: "data.".utf8) {
        data.append((Array(name.dropFirst(5)), value))
        continue
      }
      let word = String(decoding: name, as: UTF8.self)
      switch word {
      case "registration_id": if !value.isEmpty { line.set("to", value) }
      // The time to live is text: the later check then refuses a value that isn't a number.
      case "collapse_key", "restricted_package_name", "time_to_live": line.set(word, value)
      case "delay_while_idle", "dry_run": line.set(word, raw: Self.flag(value))
      default: continue
      }
    }
    guard fields.contains(where: { $0.name.elementsEqual("registration_id".utf8) && !$0.value.isEmpty }) else { return nil }
    if !data.isEmpty {
      line.set("data", object: { object in for (name, value) in data { object.set(name.span, value) } })
    }
    json = line.closed()
  }

  private static func flag(_ value: [UInt8]) -> [UInt8] {
    let word = String(decoding: value, as: UTF8.self).lowercased()
    return Array((word == "1" || word == "true" ? "true" : "false").utf8)
  }
}
