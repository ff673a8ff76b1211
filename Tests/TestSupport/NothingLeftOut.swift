import Foundation

/// True in CI: a test whose program is missing fails. Elsewhere such a test is skipped.
public let isNothingLeftOut = ProcessInfo.processInfo.environment["CI"] != nil
