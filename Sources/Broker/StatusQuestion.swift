/// What `pushfleet status` asks all workers of a fleet. One that knows no difference answers both alike.
package enum StatusQuestion {
  package static let plain = Array("status".utf8)
  /// Its answer names more pools than those in trouble and a few others.
  package static let pools = Array("status pools".utf8)
}
