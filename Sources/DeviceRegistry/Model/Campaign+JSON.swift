import PushCore

extension Campaign {
  public func write(to object: inout JSONObjectWriter) {
    object.set("id", description.id)
    object.set("app", description.app)
    object.set("message_id", description.messageID)
    object.set("target", description.target)
    object.set("state", state.name)
    object.set("sent", sent)
    object.set("failed", failed)
    if unknown > 0 { object.set("unknown", unknown) }
    if !failures.isEmpty {
      object.set(
        "failures",
        objects: failures.map { count in
          {
            $0.set("error", count.error.rawValue)
            $0.set("platform", count.platform?.word)
            $0.set("count", count.devices)
          }
        })
    }
    object.set("remaining", remaining)
    object.set("received", received)
    object.set("read", read)
    object.set("rate", figure: rate)
    object.set("seconds_left", figure: timeLeft)
    object.set("pages", pagesDone)
    object.set("created_at", time: createdAt)
    object.set("updated_at", time: updatedAt)
    object.set("finished_at", time: finishedAt)
  }

  public var json: [UInt8] { JSONObjectWriter.object(write) }
}
