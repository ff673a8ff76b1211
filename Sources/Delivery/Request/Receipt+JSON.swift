import DeviceRegistry
import PushCore

extension Receipt {
  /// The receipt as a message (docs/schema/receipt.schema.json).
  var json: [UInt8] {
    var object = JSONObjectWriter()
    object.set("event", event.rawValue)
    object.set("app", app)
    object.set("message_id", messageID)
    object.set("registration", registration)
    object.set("user", user)
    object.set("at", time: at)
    object.set("badge", badge)
    return object.closed()
  }
}
