import Foundation
import Testing

@testable import DeviceRegistry

/// Removes the file at a path and its log.
func remove(_ path: String) throws {
  for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
    try FileManager.default.removeItem(atPath: path + suffix)
  }
}

func overwrite(_ path: String, at offset: UInt64, with bytes: [UInt8]) throws {
  let file = try #require(FileHandle(forUpdatingAtPath: path))
  try file.seek(toOffset: offset)
  try file.write(contentsOf: bytes)
  try file.close()
}

func size(_ path: String) -> Int {
  ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int) ?? 0
}
