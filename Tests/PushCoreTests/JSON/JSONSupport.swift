import PushCore

func document(_ text: String, limits: JSONLimits = JSONLimits()) throws -> JSONDocument {
  try JSONDocument(Array(text.utf8), limits: limits)
}

/// Why a body isn't a document; nil if it is one.
func fault(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) -> JSONError? {
  do throws(JSONError) {
    _ = try JSONDocument(bytes, limits: limits)
    return nil
  } catch {
    return error
  }
}

func fault(_ text: String, limits: JSONLimits = JSONLimits()) -> JSONError? { fault(Array(text.utf8), limits: limits) }

/// The whole document, compactly.
func emitted(_ document: JSONDocument) -> [UInt8] {
  var output: [UInt8] = []
  document.append(document.root, to: &output)
  return output
}

/// SplitMix64: the same sequence for the same seed on every machine.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
