import PushCore
import Wire

/// A form of GCM's first interface, converted to JSON: `registration_id=…&collapse_key=…&data.x=…`.
struct GCMForm {
  let json: [UInt8]

  /// Nil if the form names no registration.
  init?(_ body: [UInt8]) throws(Fault) {
    guard let fields = PercentEncoding.fields(body) else { throw .badRequest("the form can't be read") }
    var members: [(String, any JSONMember)] = []
    var data: [(String, any JSONMember)] = []
    var seen: Set<[UInt8]> = []
    for (name, value) in fields where seen.insert(name).inserted {
      if name.starts(with: "data.".utf8) {
        data.append((String(decoding: name.dropFirst(5), as: UTF8.self), value))
        continue
      }
      let word = String(decoding: name, as: UTF8.self)
      switch word {
      case "registration_id": if !value.isEmpty { members.append(("to", value)) }
      // The time to live is text: the later check then refuses a value that isn't a number.
      case "collapse_key", "restricted_package_name", "time_to_live": members.append((word, value))
      case "delay_while_idle", "dry_run": members.append((word, Self.flag(value)))
      default: continue
      }
    }
    guard fields.contains(where: { $0.name.elementsEqual("registration_id".utf8) && !$0.value.isEmpty }) else { return nil }
    if !data.isEmpty { members.append(("data", JSONObject(data))) }
    json = JSONObject(members).line
  }

  private static func flag(_ value: [UInt8]) -> Bool {
    ["1", "true"].contains(String(decoding: value, as: UTF8.self).lowercased())
  }
}
