/// The platforms, each with its provider.
public enum ProviderKind {
  case apns(APNsProvider)
  case fcm(FCMProvider)

  var provider: any PushProvider {
    switch self {
    case .apns(let provider): provider
    case .fcm(let provider): provider
    }
  }
}
