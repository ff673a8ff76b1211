import Providers
import Reactor
import Settings
import TLS

enum VAPIDCommand: Command {
  static let page = CommandPage(
    "vapid", "create and show keys for web push",
    forms: [.action("create|show", "FILE", ["--json"])],
    """
    A VAPID key proves to push services that a push comes from you. `create` writes a new private key to FILE, which must not exist
    yet. Both actions print the public key, the applicationServerKey of web pages. The setting apps.APP.webpush.key names FILE.

    Each subscription belongs to the key that it was made with. Keep the file as long as there are subscriptions.
    """,
    [.operand("FILE", "the private key, in PEM"), .json("one JSON object")],
    example: "pushfleet vapid create vapid.pem")

  static func run(_ options: Options) throws {
    guard options.operands.count == 1 else { throw CommandFailure(.usage, "name one FILE") }
    let file = options.operands[0]
    if options.action == "create" { try create(file) }
    let key = try read(file)
    let text = key.applicationServerKey
    options.print(["applicationServerKey": text, "file": file], text: String(decoding: text, as: UTF8.self))
    if options.action == "create", !options.asJSON {
      Terminal.notice("\(SafeText.path(file)) is the only copy of the private key")
    }
  }

  private static func create(_ file: String) throws {
    let pem = try KeyPair().pem
    do throws(SystemError) { try FileContents.create(file, pem) } catch {
      throw CommandFailure(.badInput, "\(SafeText.path(file)) can't be created: \(error.reason)")
    }
  }

  private static func read(_ file: String) throws(CommandFailure) -> VAPIDKey {
    let pem: [UInt8]
    do throws(SystemError) { pem = try FileContents.read(file) } catch {
      throw CommandFailure(.badInput, "\(SafeText.path(file)) can't be read: \(error.reason)")
    }
    do throws(CredentialError) { return try VAPIDKey(pem: pem, subject: "") } catch {
      throw CommandFailure(.badInput, "\(SafeText.path(file)) is no VAPID key: \(error)")
    }
  }
}
