import PushCore
import Settings

/// What may be asked for in an application's name, and by whom. A value, so that a reload replaces it.
package struct AppRights: Equatable {
  /// The broker's users that may send to and register for the application; nil: everybody who may publish.
  var producers: Set<[UInt8]>?
  /// What `apns-topic` may say; nil where the application has no credential for APNs, since FCM's own doesn't look at the topic.
  var topics: Set<[UInt8]>?

  /// - Parameter producer: the user whom the broker has verified; empty where the message names none.
  func refusal(of producer: [UInt8]) -> Rejection? {
    guard let producers, !producers.contains(producer) else { return nil }
    return producer.isEmpty
      ? Rejection(.notAllowed, "user_id: missing, and only named producers may publish for the application")
      : Rejection(.notAllowed, "user_id: not one of the producers that may publish for the application")
  }

  /// - Parameter topic: the one that the request chooses itself.
  func refusal(ofTopic topic: [UInt8]?) -> Rejection? {
    guard let topics, let topic, !topics.contains(topic) else { return nil }
    return Rejection(.notAllowed, "apns-topic: not a topic that a request for the application may choose")
  }
}

extension AppRights {
  /// The topics of all of its credentials count together: who may send to the application may send by each of its senders.
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
