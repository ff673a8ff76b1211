import PushCore

extension Campaign {
  public var json: JSONObject {
    let failures = failures.map { count -> JSONObject in
      ["error": count.error.rawValue, "platform": count.platform?.word, "count": count.devices]
    }
    return [
      "id": description.id, "app": description.app, "message_id": description.messageID, "target": description.target,
      "state": state.name, "sent": sent, "failed": failed, "unknown": JSONOptional(unknown > 0 ? unknown : nil),
      "failures": JSONOptional(failures.isEmpty ? nil : failures), "remaining": remaining, "received": received, "read": read,
      "rate": rate, "seconds_left": timeLeft, "pages": pagesDone, "chains": description.chains,
      "created_at": Timestamp.text(createdAt),
      "updated_at": Timestamp.text(updatedAt), "finished_at": finishedAt.map(Timestamp.text),
    ]
  }
}
