/// A provider of any platform.
public enum ProviderKind {
  case apns(APNsProvider)
  case fcm(FCMProvider)
  case webpush(WebPushProvider)

  var provider: any PushProvider {
    switch self {
    case .apns(let provider): provider
    case .fcm(let provider): provider
    case .webpush(let provider): provider
    }
  }
}
