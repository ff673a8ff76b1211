/// Refuses content that Apple devices don't accept with the request's push type, whether through APNs or FCM.
extension RequestReader {
  func checkPushType(_ request: SendRequest) throws(Rejection) {
    guard let blocks = request.blocks, blocks.apns[.payload] != nil || blocks.apnsHeaders[.apnsPushType] != nil else { return }
    let content = APSContent(request)
    let named = blocks.apnsHeaders[.apnsPushType]
    if let named, document.isString(named, "background") { try refuseVisible(content, named) }
    let type = named.flatMap { PushType(word: document.string($0)) } ?? content.inferredPushType
    if type != .liveactivity { try refuseScoreOutOfRange(content) }
  }

  /// Apple: a background push has no alert, badge or sound, and only `content-available` in `aps`.
  private func refuseVisible(_ content: APSContent, _ header: Int) throws(Rejection) {
    if let rejection = content.excessInBackground(document) { throw rejection }
    guard content.isVisible else { return }
    throw refusal(header, .invalidParameters, "background, but the notification has an alert, badge or sound")
  }

  /// Only a live activity may have any score.
  private func refuseScoreOutOfRange(_ content: APSContent) throws(Rejection) {
    guard let override = content.override, let node = document.value(APSKey.relevanceScore.wireName, of: override),
      let score = document.double(node), !(0...1).contains(score)
    else { return }
    throw refusal(node, .invalidParameters, "expected a number from 0 to 1")
  }
}

extension APSContent {
  /// The members of the block's `aps` that a background push can't have.
  func namesBeyondBackground(_ document: JSONDocument) -> [(name: Int, value: Int)] {
    guard let override else { return [] }
    return document.members(of: override).filter {
      document.kind($0.value) != .null && !document.isString($0.name, APSKey.contentAvailable.wireName)
    }.map { ($0.name, $0.value) }
  }

  /// Why a background push can't have the block's `aps`; nil if it can.
  func excessInBackground(_ document: JSONDocument) -> Rejection? {
    guard let (name, value) = namesBeyondBackground(document).first else { return nil }
    return Rejection(
      .invalidParameters,
      "\(document.path(to: value)): a background push allows only content-available, name another apns-push-type; at byte \(document.offset(name))"
    )
  }
}
