import PushCore
import Settings

/// The requests that producers may make for an application. A value, so that a reload replaces it.
package struct AppRights: Equatable {
  /// The broker's users that may send to and register for the application; nil allows every user that may publish.
  var producers: Set<[UInt8]>?
  /// The allowed values of `apns-topic`; nil if the application has no APNs credential, because FCM ignores the topic.
  var topics: Set<[UInt8]>?

  /// - Parameter producer: the user that the broker has verified; empty if the message has none.
  func refusal(of producer: [UInt8]) -> Rejection? {
    guard let producers, !producers.contains(producer) else { return nil }
    return producer.isEmpty
      ? Rejection(.notAllowed, "user_id: missing, and only named producers may publish for the application")
      : Rejection(.notAllowed, "user_id: not one of the producers that may publish for the application")
  }

  /// - Parameter topic: the topic in the request.
  func refusal(ofTopic topic: [UInt8]?) -> Rejection? {
    guard let topics, let topic, !topics.contains(topic) else { return nil }
    return Rejection(.notAllowed, "apns-topic: not a topic that a request for the application may choose")
  }
}

extension AppRights {
  /// Joins the topics of all credentials: a producer of the application may use each of its senders.
  package init(_ app: AppConfiguration) {
    producers = app.producers.map { Set($0.map { Array($0.utf8) }) }
    let credentials = app.sets.flatMap(\.set.apns)
    guard !credentials.isEmpty else { return }
    topics = []
    for credential in credentials {
      for type in PushType.allCases { topics?.insert(Array((credential.topic + type.topicSuffix).utf8)) }
      for topic in credential.topics { topics?.insert(Array(topic.utf8)) }
    }
  }
}
