import PushCore

/// Parses and translates one request repeatedly, without I/O. `dev/bench` divides the cost by COUNT.
///
///     Benchmarks apns|fcm COUNT < request.json
///
/// The request is one line. Prints the total bytes for a provider, so that the compiler can't remove any work.
@main
enum Benchmarks {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]), let line = readLine(),
      let step = ["apns": apns, "fcm": fcm][arguments[1]]
    else { fatalError("usage: Benchmarks apns|fcm COUNT < request.json") }
    let body = Array(line.utf8)
    let messageID = Array("bench-00000001".utf8)
    var bytes = 0
    for number in 0..<count {
      // Copy the request, because each one from the broker has separate memory.
      var own = body
      own.append(UInt8(ascii: " "))
      bytes += step(own, TranslationContext(now: Int64(number), deadline: 2_419_200_000, messageID: messageID))
    }
    print(bytes)
  }

  private static func apns(_ body: [UInt8], _ context: TranslationContext) -> Int {
    var report: LossReport?
    guard case .success(let request) = SendRequest.parse(body), case .one(.apns(let token)) = request.targets,
      let template = try? APNsTemplate(request, settings: settings, context: context, report: &report)
    else { fatalError("the request can't be translated for APNs") }
    let push = template.stamp(token: token[...])
    return push.payload.count + push.id.count
  }

  private static func fcm(_ body: [UInt8], _ context: TranslationContext) -> Int {
    var report: LossReport?
    guard case .success(let request) = SendRequest.parse(body), case .one(.fcm(let token)) = request.targets,
      let template = try? FCMTemplate(request, context: context, report: &report)
    else { fatalError("the request can't be translated for FCM") }
    return template.body(token: token[...]).count
  }

  private static let settings = APNsSettings(topic: "com.example.app")
}
